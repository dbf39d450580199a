import { describe, expect, it } from 'vitest';
import type { RunEvent } from '../../../src/contract/events.js';
import { LiveView } from '../../../src/dev/liveView.js';

type Loose = Record<string, unknown> & { readonly kind: string };

/** Shows events on something that writes into a string; block ids and cursors are filled in. */
function shown(events: readonly Loose[], columns: number | null): string {
  let text = '';
  const view = new LiveView({ columns, write: (part) => (text += part) });
  events.forEach((event, index) => {
    const full = { runId: 'run-1', turnId: 'turn-1', seq: index + 1, t: 0, ...event } as unknown as RunEvent;
    view.show({ cursor: 1_000_001 + index, event: full });
  });
  return text;
}

const TURN: readonly Loose[] = [
  { kind: 'turn_started', agentId: 'agent-1', agentName: 'greeter' },
  { kind: 'text_start', blockId: 'text-1' },
  { kind: 'text_delta', blockId: 'text-1', text: 'Hello, Charles' },
  { kind: 'turn_reset' },
  { kind: 'text_delta', blockId: 'text-1', text: 'Hello, Ada' },
  { kind: 'text_end', blockId: 'text-1' },
  { kind: 'turn_ended', agentId: 'agent-1', agentName: 'greeter', reason: 'complete' },
];

/** What a terminal of so many columns would show, for the few escapes that the view uses. */
function screen(text: string): readonly string[] {
  const lines = [''];
  let row = 0;
  for (const [, escape, plain] of text.matchAll(/(\u001b\[[0-9;]*[A-Za-z])|([^\u001b])/g)) {
    if (escape?.endsWith('J') === true) {
      lines.length = row + 1;
      lines[row] = '';
    } else if (escape?.endsWith('A') === true) row = Math.max(0, row - Number(/\d+/.exec(escape)?.[0] ?? 1));
    else if (plain === '\n') {
      row += 1;
      lines[row] ??= '';
    } else if (plain === '\r') continue;
    else if (plain !== undefined) lines[row] = (lines[row] ?? '') + plain;
  }
  return lines.filter((line) => line !== '');
}

describe('the live view', () => {
  it('off a terminal says how much a reset takes back', () => {
    expect(shown(TURN, null).split('\n')).toEqual([
      'greeter:',
      '    Hello, Charles',
      '  taken back: 14 characters',
      '    Hello, Ada',
      '  greeter complete',
      '',
    ]);
  });

  it('on a terminal erases what a reset voids', () => {
    const lines = screen(shown(TURN, 80));
    expect(lines.join('\n')).not.toContain('Charles');
    expect(lines).toContain('    Hello, Ada');
  });

  it('keeps a closed block when a later one of the same turn is reset', () => {
    const lines = screen(
      shown(
        [
          { kind: 'turn_started', agentId: 'agent-1' },
          { kind: 'text_start', blockId: 'text-1' },
          { kind: 'text_delta', blockId: 'text-1', text: 'Checking.' },
          { kind: 'text_end', blockId: 'text-1' },
          { kind: 'text_start', blockId: 'text-2' },
          { kind: 'text_delta', blockId: 'text-2', text: 'There are tw' },
          { kind: 'turn_reset' },
          { kind: 'text_delta', blockId: 'text-2', text: 'Two matches.' },
        ],
        80,
      ),
    );
    expect(lines).toContain('    Checking.');
    expect(lines).toContain('    Two matches.');
    expect(lines.join('\n')).not.toContain('There are tw');
  });

  it('says nothing for a reset that voids nothing', () => {
    expect(shown([{ kind: 'turn_started', agentId: 'a' }, { kind: 'turn_reset' }], null)).toBe('a:\n');
  });

  it('can not unsay what another turn has printed below, so it says it in words', () => {
    const text = shown(
      [
        { kind: 'turn_started', agentId: 'agent-1' },
        { kind: 'text_delta', blockId: 'text-1', text: 'One' },
        { kind: 'text_delta', blockId: 'text-1', text: 'Other', turnId: 'turn-2' },
        { kind: 'turn_reset' },
      ],
      null,
    );
    expect(text).toContain('taken back: 3 characters');
  });

  const started = (n: number): Loose => ({
    kind: 'turn_started',
    agentId: `agent-${n}`,
    agentName: `agent ${n}`,
    turnId: `turn-${n}`,
  });
  const delta = (n: number, text: string): Loose => ({
    kind: 'text_delta',
    blockId: 'text-1',
    text,
    turnId: `turn-${n}`,
  });
  const end = (n: number): readonly Loose[] => [
    { kind: 'text_end', blockId: 'text-1', turnId: `turn-${n}` },
    {
      kind: 'turn_ended',
      agentId: `agent-${n}`,
      agentName: `agent ${n}`,
      reason: 'complete',
      turnId: `turn-${n}`,
    },
  ];

  it('shows what agents that talk at once say one below the other, each under its name', () => {
    const events = [
      started(1),
      started(2),
      delta(1, 'One '),
      delta(2, 'Two '),
      delta(1, 'and one.'),
      delta(2, 'and two.'),
      ...end(2),
      delta(1, ' Still one.'),
      ...end(1),
    ];
    expect(shown(events, null).split('\n')).toEqual([
      'agent 1:',
      'agent 2:',
      'agent 1:',
      '    One and one.',
      'agent 2:',
      '    Two and two.',
      '  agent 2 complete',
      'agent 1:',
      '     Still one.',
      '  agent 1 complete',
      '',
    ]);
  });

  it.each([null, 80])('takes text back from the agent that said it, with %s columns', (columns) => {
    const events = [
      started(1),
      started(2),
      delta(1, 'Wrong.'),
      delta(2, 'Right.'),
      { kind: 'turn_reset', turnId: 'turn-1' },
      delta(1, 'Better.'),
      ...end(1),
      ...end(2),
    ];
    const lines = screen(shown(events, columns)).map((line) => line.replace(/\s+$/, ''));
    const from = lines.indexOf('  taken back: 6 characters');
    expect(lines.slice(from)).toEqual([
      '  taken back: 6 characters',
      '    Better.',
      '  agent 1 complete',
      'agent 2:',
      '    Right.',
      '  agent 2 complete',
    ]);
    expect(lines.includes('    Wrong.')).toBe(columns === null);
  });

  it('needs no word for voided text that was never shown', () => {
    const events = [
      started(1),
      started(2),
      delta(1, 'Mine.'),
      delta(2, 'Never seen.'),
      { kind: 'turn_reset', turnId: 'turn-2' },
    ];
    expect(shown(events, null)).not.toMatch(/Never seen|taken back/);
  });

  it('names the speaker again after a line that is not its own', () => {
    const events = [
      started(1),
      delta(1, 'Half '),
      { kind: 'phase', name: 'Next', id: 'p' },
      delta(1, 'whole.'),
    ];
    expect(shown(events, null).split('\n')).toEqual([
      'agent 1:',
      '    Half ',
      'phase: Next',
      'agent 1:',
      '    whole.',
    ]);
  });

  it('lets neither a model nor a program print a line that looks like one of ours', () => {
    const events = [
      started(1),
      delta(1, 'fine\nphase: fake\r\n  | fake'),
      ...end(1),
      { kind: 'program_output', stream: 'stdout', text: 'a\noutput: "fake"\n' },
      { kind: 'phase', name: 'One\noutput: 1', id: 'p' },
    ];
    expect(shown(events, null).split('\n').slice(1)).toEqual([
      '    fine',
      '    phase: fake',
      '      | fake',
      '  agent 1 complete',
      '  | a',
      '  | output: "fake"',
      'phase: One\\noutput: 1',
      '',
    ]);
  });

  it('shows control characters instead of sending them to the terminal', () => {
    const text = shown(
      [
        started(1),
        delta(1, 'a\u001b[2Jb\u0007\u202ec\td'),
        ...end(1),
        { kind: 'program_output', stream: 'stderr', text: '\u001b]0;title\u0007\rover' },
      ],
      null,
    );
    expect(text).toContain('a\\x1b[2Jb\\x07\\u202ec\td');
    expect(text).toContain('  ! \\x1b]0;title\\x07\\x0dover');
    expect(text).not.toMatch(/[\u001b\u0007\r\u202e]/);
  });
});
