import { describe, expect, test } from 'vitest';
import { Refusal } from '../../../src/executor/gateway/answers.js';
import { readRows } from '../../../src/executor/gateway/frames.js';

const RULES = { runId: 'run_q7', aboveCursor: 0, frameBytes: 1_000, framesPerBatch: 10 };

function frame(cursor: number, event: Record<string, unknown> = {}): string {
  return JSON.stringify({
    cursor,
    event: { runId: 'run_q7', turnId: 'run_q7', seq: cursor % 1_000_000, t: 1, kind: 'phase', ...event },
  });
}

function refusal(body: unknown, rules: Partial<typeof RULES> = {}): { status: number; message: string } {
  try {
    readRows(body, { ...RULES, ...rules });
  } catch (error) {
    if (error instanceof Refusal) return { status: error.status, message: error.message };
    throw error;
  }
  throw new Error('the frames were taken');
}

describe('telemetry frames', () => {
  test('rows with rising cursors pass unchanged, also over a block boundary and with an unknown kind', () => {
    const frames = [frame(1), frame(2, { kind: 'something_new', more: [1] }), frame(3_000_001)];
    expect(readRows({ frames }, RULES).map((row) => [row.cursor, row.frame])).toEqual([
      [1, frames[0]],
      [2, frames[1]],
      [3_000_001, frames[2]],
    ]);
  });

  test('an empty batch has no rows', () => {
    expect(readRows({ frames: [] }, RULES)).toEqual([]);
  });

  test.each([
    ['no object', 'frames'],
    ['no frames', {}],
    ['frames that are no array', { frames: 'x' }],
    ['a frame that is no string', { frames: [{ cursor: 1 }] }],
    ['a frame that is no JSON', { frames: ['{"cursor":'] }],
    ['a frame that is no object', { frames: ['[1]'] }],
    ['no cursor', { frames: ['{"event":{}}'] }],
    ['a fractional cursor', { frames: ['{"cursor":1.5,"event":{"runId":"run_q7","seq":1.5}}'] }],
    ['a cursor without seq', { frames: [frame(2_000_000)] }],
    ['a negative cursor', { frames: ['{"cursor":-1,"event":{"runId":"run_q7","seq":-1}}'] }],
    ['no event', { frames: ['{"cursor":1}'] }],
    ['an event of another run', { frames: [frame(1, { runId: 'run_x' })] }],
    ['a seq that is not the cursor’s', { frames: [frame(1, { seq: 2 })] }],
    ['a repeated cursor', { frames: [frame(1), frame(1)] }],
    ['a falling cursor', { frames: [frame(2), frame(1)] }],
  ])('refuses %s', (_what, body) => {
    expect(refusal(body).status).toBe(400);
  });

  test('a row at or below the last cursor of the claim would vanish as a repeat, so it is refused', () => {
    expect(refusal({ frames: [frame(2_000_005)] }, { aboveCursor: 2_000_005 }).status).toBe(400);
    expect(readRows({ frames: [frame(3_000_001)] }, { ...RULES, aboveCursor: 2_000_005 })).toHaveLength(1);
  });

  test('a refusal never quotes the frame', () => {
    expect(refusal({ frames: ['{"cursor":1, "hunter2'] }).message).not.toContain('hunter2');
  });

  test('one frame and one batch are bounded', () => {
    expect(refusal({ frames: [frame(1, { text: 'ü'.repeat(500) })] })).toMatchObject({ status: 413 });
    expect(refusal({ frames: Array.from({ length: 11 }, (_, index) => frame(index + 1)) })).toMatchObject({
      status: 413,
    });
  });
});
