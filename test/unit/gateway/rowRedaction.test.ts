import { describe, expect, test } from 'vitest';
import { readRows } from '../../../src/executor/gateway/frames.js';
import { redactRows } from '../../../src/executor/gateway/rowRedaction.js';
import { SecretSet } from '../../../src/redaction/secretSet.js';

const RULES = { runId: 'run_q7', aboveCursor: 0, frameBytes: 100_000, framesPerBatch: 100 };

function secretSet(...values: string[]): SecretSet {
  const set = new SecretSet();
  for (const value of values) set.add(value);
  return set;
}

/** What a batch of these events looks like in the lane. */
function cleaned(
  secrets: SecretSet,
  ...events: Record<string, unknown>[]
): { events: Record<string, unknown>[]; frames: string[]; sent: string[] } {
  const sent = events.map((event, index) =>
    JSON.stringify({
      cursor: index + 1,
      event: { runId: 'run_q7', turnId: 'T1', seq: index + 1, t: 5, ...event },
    }),
  );
  const rows = redactRows(readRows({ frames: sent }, RULES), secrets);
  const frames = rows.map((row) => row.frame);
  expect(rows.map((row) => row.cursor)).toEqual(events.map((_, index) => index + 1));
  return {
    events: frames.map((frame) => (JSON.parse(frame) as { event: Record<string, unknown> }).event),
    frames,
    sent,
  };
}

const delta = (text: string, blockId = 'text-1', turnId = 'T1'): Record<string, unknown> => ({
  kind: 'text_delta',
  turnId,
  blockId,
  text,
});

describe('the second line of redaction', () => {
  test('rows without a secret go on byte for byte', () => {
    const { frames, sent } = cleaned(secretSet('hunter2!'), delta('nothing '), delta('here'), {
      kind: 'other',
      x: [1],
    });
    expect(frames).toEqual(sent);
  });

  test('a secret is found in whole texts, deep values and where JSON escapes it', () => {
    const { events, frames, sent } = cleaned(
      secretSet('pass"word\n1'),
      { kind: 'program_output', stream: 'stdout', text: 'it is pass"word\n1.' },
      { kind: 'output', value: { deep: [{ key: 'pass"word\n1' }] } },
      { kind: 'phase', name: 'clean', id: 'p' },
    );
    expect(events[0]).toMatchObject({ text: 'it is [REDACTED].' });
    expect(events[1]).toMatchObject({ value: { deep: [{ key: '[REDACTED]' }] } });
    expect(frames[2]).toBe(sent[2]);
  });

  test('a secret that is split over the deltas of a block never shows (R16)', () => {
    const { events } = cleaned(secretSet('hunter2!'), delta('it is hun'), delta('ter'), delta('2! ok'));
    expect(events.map((event) => event['text']).join('')).toBe('it is [REDACTED] ok');
    expect(events.map((event) => event['seq'])).toEqual([1, 2, 3]);
  });

  test('reasoning and the output of one tool are joined too', () => {
    const { events } = cleaned(
      secretSet('hunter2!'),
      { kind: 'reasoning_delta', text: 'hunt' },
      { kind: 'tool_output_delta', toolCallId: 'c1', stream: 'stdout', text: 'hunt' },
      { kind: 'tool_output_delta', toolCallId: 'c1', stream: 'stderr', text: 'er2!' },
      { kind: 'reasoning_delta', text: 'er2!' },
      { kind: 'tool_output_delta', toolCallId: 'c1', stream: 'stdout', text: 'er2!' },
    );
    expect(events.map((event) => event['text'])).toEqual(['[REDACTED]', '[REDACTED]', 'er2!', '', '']);
  });

  test('texts that no viewer joins are not joined: other blocks, other turns, before and after a reset', () => {
    const { frames, sent } = cleaned(
      secretSet('hunter2!'),
      delta('hunt', 'text-1'),
      delta('er2!', 'text-2'),
      delta('hunt', 'text-1', 'T2'),
      delta('hunt', 'text-3'),
      { kind: 'turn_reset' },
      delta('er2!', 'text-3'),
    );
    expect(frames).toEqual(sent);
  });

  test('a secret that equals a word of the protocol breaks no row', () => {
    const { frames, sent } = cleaned(
      secretSet('text_delta', 'text-1', 'run_q7', 'error', 'stdout', 'running'),
      delta('x'),
      { kind: 'turn_ended', agentId: 'agent-1', reason: 'error' },
      { kind: 'program_output', stream: 'stdout', text: 'y' },
      { kind: 'run_status', status: 'running' },
    );
    expect(frames).toEqual(sent);
  });

  test('the reason of a denied connection is free text', () => {
    const { events } = cleaned(secretSet('hunter2!'), {
      kind: 'egress_denied',
      host: 'hunter2!.example',
      reason: 'saw hunter2!',
    });
    expect(events[0]).toMatchObject({ host: '[REDACTED].example', reason: 'saw [REDACTED]' });
  });
});
