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
      '  Hello, Charles',
      '  taken back: 14 characters',
      '  Hello, Ada',
      '  greeter complete',
      '',
    ]);
  });

  it('on a terminal erases what a reset voids', () => {
    const lines = screen(shown(TURN, 80));
    expect(lines.join('\n')).not.toContain('Charles');
    expect(lines).toContain('  Hello, Ada');
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
    expect(lines).toContain('  Checking.');
    expect(lines).toContain('  Two matches.');
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
});
