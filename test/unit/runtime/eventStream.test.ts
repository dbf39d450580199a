// Numbering and sending of rows: blocks, order, one batch in flight, back-pressure, the end of a lost run.

import { describe, expect, test } from 'vitest';
import { EventStream, type Row } from '../../../src/runtime/eventStream.js';

interface Parsed {
  readonly cursor: number;
  readonly event: { readonly seq: number; readonly turnId: string; readonly kind: string };
}

function parsed(rows: readonly Row[]): readonly Parsed[] {
  return rows.map((row) => JSON.parse(row.frame) as Parsed);
}

/** A stream whose batches stay in flight until the test lets them land. */
function heldStream(lastCursor = 0): {
  stream: EventStream;
  batches: (readonly Row[])[];
  land: () => void;
  lose: () => void;
} {
  const batches: (readonly Row[])[] = [];
  let settle: { resolve: () => void; reject: (error: Error) => void } | undefined;
  const stream = new EventStream({
    runId: 'r1',
    lastCursor,
    now: () => 7,
    deliver: async (rows) => {
      batches.push(rows);
      await new Promise<void>((resolve, reject) => (settle = { resolve, reject }));
    },
  });
  return { stream, batches, land: () => settle?.resolve(), lose: () => settle?.reject(new Error('lost')) };
}

/** Lets everything that waits for nothing but its turn happen. */
async function turnOfTheLoop(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe('cursors', () => {
  test('start at 1 when nothing is stored, else in the next block', async () => {
    const fresh = heldStream();
    fresh.stream.emit({ kind: 'run_status', status: 'running' });
    const later = heldStream(2_000_005);
    later.stream.emit({ kind: 'run_status', status: 'running' });
    await turnOfTheLoop();
    expect(fresh.batches[0]?.[0]?.cursor).toBe(1);
    expect(later.batches[0]?.[0]?.cursor).toBe(3_000_001);
  });

  test('a turn opens a block, in which whatever comes next goes on', async () => {
    const { stream, batches } = heldStream();
    stream.emit({ kind: 'run_status', status: 'running' });
    stream.startTurn('t1', { agentId: 'agent-1' });
    stream.emit({ kind: 'phase', name: 'p', id: 'p' });
    await turnOfTheLoop();
    expect(parsed(batches[0] ?? []).map(({ cursor, event }) => [cursor, event.seq, event.turnId])).toEqual([
      [1, 1, 'r1'],
      [1_000_001, 1, 't1'],
      [1_000_002, 2, 'r1'],
    ]);
  });

  test('a full block is followed by another instead of an error (R27)', async () => {
    const cursors: number[] = [];
    const stream = new EventStream({
      runId: 'r1',
      lastCursor: 0,
      rowsPerBlock: 2,
      deliver: (batch) => Promise.resolve(void cursors.push(...batch.map((row) => row.cursor))),
    });
    for (let count = 0; count < 5; count += 1) stream.emit({ kind: 'resumed' });
    await stream.drained();
    expect(cursors).toEqual([1, 2, 1_000_001, 1_000_002, 2_000_001]);
  });
});

describe('sending', () => {
  test('one batch is in flight; what gathers meanwhile is the next, in order (R7, R17)', async () => {
    const { stream, batches, land } = heldStream();
    stream.emit({ kind: 'resumed' });
    await turnOfTheLoop();
    for (let count = 0; count < 3; count += 1) stream.emit({ kind: 'resumed' });
    await turnOfTheLoop();
    expect(batches.map((batch) => batch.length)).toEqual([1]);
    land();
    await turnOfTheLoop();
    expect(batches.map((batch) => batch.map((row) => row.cursor))).toEqual([[1], [2, 3, 4]]);
  });

  test('a batch is bounded in rows and size', async () => {
    const { stream, batches, land } = heldStream();
    for (let count = 0; count < 1_500; count += 1) stream.emit({ kind: 'resumed' });
    await turnOfTheLoop();
    land();
    await turnOfTheLoop();
    expect(batches.map((batch) => batch.length)).toEqual([1_000, 500]);
    const large = heldStream();
    for (let count = 0; count < 3; count += 1)
      large.stream.emit({ kind: 'output', value: 'x'.repeat(700_000) });
    await turnOfTheLoop();
    expect(large.batches.map((batch) => batch.length)).toEqual([1]);
  });

  test('drained waits for the batch that is in flight, too', async () => {
    const { stream, land } = heldStream();
    stream.emit({ kind: 'resumed' });
    await turnOfTheLoop();
    let drained = false;
    const draining = stream.drained().then(() => (drained = true));
    await turnOfTheLoop();
    expect(drained).toBe(false);
    land();
    await draining;
    expect(drained).toBe(true);
  });

  test('who can wait does while too much is on its way, and goes on when it has landed', async () => {
    const { stream, land } = heldStream();
    stream.emit({ kind: 'output', value: 'x'.repeat(3 * 1024 * 1024) });
    expect(stream.isFull).toBe(true);
    let went = false;
    const room = stream.room().then(() => (went = true));
    await turnOfTheLoop();
    expect(went).toBe(false);
    land();
    await room;
    expect(stream.isFull).toBe(false);
  });

  test('when nothing can be delivered any more, nobody waits for it', async () => {
    const { stream, batches, lose } = heldStream();
    stream.emit({ kind: 'output', value: 'x'.repeat(3 * 1024 * 1024) });
    const room = stream.room();
    await turnOfTheLoop();
    lose();
    await room;
    await stream.drained();
    stream.emit({ kind: 'resumed' });
    await turnOfTheLoop();
    expect(batches).toHaveLength(1);
  });
});
