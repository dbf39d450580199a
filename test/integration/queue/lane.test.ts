import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../../src/queue/fleet.js';
import { Lanes } from '../../../src/queue/lane.js';
import { generateFleetKey, parseFleetKeys, Sealer } from '../../../src/queue/seal.js';
import { openTestFleet, startedRun } from '../../support/fleet.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';

let redis: TestRedis;
let fleet: Fleet;
beforeAll(async () => {
  redis = await startTestRedis();
  fleet = await openTestFleet(redis);
});
afterAll(async () => {
  await fleet.close();
  await redis.stop();
});

const rows = (from: number, count: number, frame = 'frame') =>
  Array.from({ length: count }, (_, index) => ({ cursor: from + index, frame: `${frame} ${from + index}` }));
const all = { maxRows: 10_000, maxBytes: 100_000_000 };
const cursorsOf = async (runId: string) =>
  (await fleet.lanes.head(runId, all)).map((entry) => (entry.kind === 'row' ? entry.cursor : entry.kind));

describe('appending', () => {
  it('keeps rows in cursor order and tells what the lane holds', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    expect(await fleet.lanes.append(runId, 'mine', [{ cursor: 3, frame: 'ab' }])).toEqual({
      outcome: 'appended',
      rows: 1,
      bytes: 2,
      needsFlush: true,
    });
    expect(await fleet.lanes.append(runId, 'mine', [{ cursor: 9, frame: 'é' }])).toEqual({
      outcome: 'appended',
      rows: 2,
      bytes: 4,
      needsFlush: false,
    });
    expect(await fleet.lanes.head(runId, all)).toEqual([
      { kind: 'row', id: '3-0', cursor: 3, frame: 'ab', bytes: 2 },
      { kind: 'row', id: '9-0', cursor: 9, frame: 'é', bytes: 2 },
    ]);
    expect(await fleet.lanes.append(runId, 'mine', [])).toMatchObject({ rows: 2, bytes: 4 });
  });

  it('skips what it has seen, in whole and in part, however often and however concurrently it is resent', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    const resends = Array.from({ length: 20 }, (_, index) =>
      fleet.lanes.append(runId, 'mine', rows(1, index + 1)),
    );
    await Promise.all([...resends, ...resends.map(() => fleet.lanes.append(runId, 'mine', rows(1, 20)))]);
    expect(await cursorsOf(runId)).toEqual(rows(1, 20).map((row) => row.cursor));
    expect(await fleet.lanes.append(runId, 'mine', [])).toMatchObject({ rows: 20 });
  });

  it('recognises a repeat also after the row has shipped', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    await fleet.lanes.append(runId, 'mine', rows(1, 2));
    await fleet.lanes.trim(runId, '2-0');
    expect(await fleet.lanes.append(runId, 'mine', rows(1, 2))).toEqual({
      outcome: 'appended',
      rows: 0,
      bytes: 0,
      needsFlush: false,
    });
  });

  it('takes cursors as large as they get', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    const cursor = Number.MAX_SAFE_INTEGER - 1;
    await fleet.lanes.append(runId, 'mine', [{ cursor, frame: 'row' }]);
    await fleet.lanes.append(runId, 'mine', [{ cursor: cursor + 1, frame: 'row' }]);
    await fleet.lanes.append(runId, 'mine', [{ cursor, frame: 'row' }]);
    expect(await cursorsOf(runId)).toEqual([cursor, cursor + 1]);
    await fleet.lanes.trim(runId, `${cursor}-0`);
    expect(await cursorsOf(runId)).toEqual([cursor + 1]);
  });

  it.each([[[2, 1]], [[1, 1]], [[0]], [[1.5]], [[-1]]])('never takes the cursors %j', async (cursors) => {
    const { runId } = await startedRun(fleet, 'mine');
    const append = fleet.lanes.append(
      runId,
      'mine',
      cursors.map((cursor) => ({ cursor, frame: 'row' })),
    );
    await expect(append).rejects.toThrow(RangeError);
  });

  it('is refused for a foreign attempt', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    expect(await fleet.lanes.append(runId, 'other', rows(1, 1))).toEqual({ outcome: 'foreign_attempt' });
    expect(await fleet.lanes.append('run_nobody', 'mine', rows(1, 1))).toEqual({
      outcome: 'foreign_attempt',
    });
    expect(await cursorsOf(runId)).toEqual([]);
  });
});

describe('the finalize', () => {
  it('is the last entry, opened for its shipper and sealed in Redis', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    await fleet.lanes.append(runId, 'mine', rows(1, 2));
    expect(await fleet.lanes.appendFinalize(runId, 'mine', '{"output":"clear"}')).toEqual({
      outcome: 'appended',
      needsFlush: false,
    });
    expect((await fleet.lanes.head(runId, all)).at(-1)).toEqual({
      kind: 'finalize',
      id: '2-1',
      body: '{"output":"clear"}',
    });
    expect((await redis.dump()).get(fleet.keys.lane(runId))).not.toContain('clear');
    expect(await fleet.runStates.get(runId)).toMatchObject({ phase: 'finishing' });
  });

  it('stands alone in a run without rows', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    expect(await fleet.lanes.appendFinalize(runId, 'mine', '{}')).toEqual({
      outcome: 'appended',
      needsFlush: true,
    });
    expect(await fleet.lanes.head(runId, all)).toEqual([{ kind: 'finalize', id: '0-1', body: '{}' }]);
  });

  it('repeated by its attempt is one finalize, also when the run is done by now', async () => {
    const { runId, leaseId } = await startedRun(fleet, 'mine');
    const answers = await Promise.all([1, 2, 3].map(() => fleet.lanes.appendFinalize(runId, 'mine', '{}')));
    expect(answers.map((answer) => answer.outcome).sort()).toEqual(['appended', 'repeated', 'repeated']);
    expect(await cursorsOf(runId)).toEqual(['finalize']);
    expect(await fleet.lanes.appendFinalize(runId, 'other', '{}')).toEqual({ outcome: 'foreign_attempt' });
    await fleet.runStates.finish(runId, leaseId, { status: 'completed', answer: 'acknowledged' });
    expect(await fleet.lanes.appendFinalize(runId, 'mine', '{}')).toEqual({
      outcome: 'repeated',
      needsFlush: false,
    });
    expect(await fleet.lanes.append(runId, 'mine', rows(1, 1))).toEqual({ outcome: 'finalized' });
    expect(await fleet.lanes.appendFinalize(runId, 'other', '{}')).toEqual({ outcome: 'foreign_attempt' });
  });

  it('closes the lane', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    await fleet.lanes.appendFinalize(runId, 'mine', '{}');
    expect(await fleet.lanes.append(runId, 'mine', rows(1, 1))).toEqual({ outcome: 'finalized' });
  });

  it('outlives a newer claim of the run, which then only ships it', async () => {
    const claim = await startedRun(fleet, 'mine');
    await fleet.lanes.appendFinalize(claim.runId, 'mine', '{"n":1}');
    const newer = { ...claim, leaseId: 'lse_newer', leaseExpiresAtMs: claim.leaseExpiresAtMs + 1 };
    await fleet.runStates.recordClaim(newer);
    expect(await fleet.runStates.startAttempt({ ...newer, executorId: 'e', attemptToken: 'next' })).toEqual({
      outcome: 'finalizing',
    });
    expect(await fleet.lanes.head(claim.runId, all)).toMatchObject([{ kind: 'finalize', body: '{"n":1}' }]);
  });

  it('that cannot be opened holds no rows back and says why', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    await fleet.lanes.append(runId, 'mine', rows(1, 1));
    await fleet.lanes.appendFinalize(runId, 'mine', '{}');
    const stranger = new Lanes(fleet.redis, fleet.keys, new Sealer(parseFleetKeys(generateFleetKey())));
    expect(await stranger.head(runId, all)).toMatchObject([{ kind: 'row' }]);
    await stranger.trim(runId, '1-0');
    await expect(stranger.head(runId, all)).rejects.toMatchObject({ code: 'SEAL_INVALID' });
  });
});

describe('the head', () => {
  it('is bounded by rows and by bytes, and never empty while there is something', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    await fleet.lanes.append(
      runId,
      'mine',
      Array.from({ length: 30 }, (_, index) => ({ cursor: index + 1, frame: 'x'.repeat(100) })),
    );
    const count = async (maxRows: number, maxBytes: number) =>
      (await fleet.lanes.head(runId, { maxRows, maxBytes })).length;
    expect(await count(7, 100_000)).toBe(7);
    expect(await count(1_000, 1_000)).toBe(10);
    expect(await count(1_000, 1_099)).toBe(10);
    expect(await count(1_000, 1)).toBe(1);
    expect(await count(1_000, 100_000)).toBe(30);
  });
});

describe('trimming', () => {
  it('takes exactly what was named, once, and leaves the rest in order', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    await fleet.lanes.append(runId, 'mine', rows(1, 5, 'x'));
    expect(await fleet.lanes.trim(runId, '3-0')).toEqual({ left: 2 });
    expect(await fleet.lanes.trim(runId, '3-0')).toEqual({ left: 2 });
    expect(await fleet.lanes.trim(runId, '1-0')).toEqual({ left: 2 });
    expect(await cursorsOf(runId)).toEqual([4, 5]);
    expect(await fleet.lanes.append(runId, 'mine', [])).toMatchObject({ rows: 2, bytes: 6 });
  });

  it('does not take the finalize along with the row of the same cursor', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    await fleet.lanes.append(runId, 'mine', rows(1, 1));
    await fleet.lanes.appendFinalize(runId, 'mine', '{}');
    expect(await fleet.lanes.trim(runId, '1-0')).toEqual({ left: 1 });
    expect(await cursorsOf(runId)).toEqual(['finalize']);
    expect(await fleet.lanes.trim(runId, '1-1')).toEqual({ left: 0 });
  });

  it('to nothing disarms the lane, so that the next append asks for a flush again', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    await fleet.lanes.append(runId, 'mine', rows(1, 1));
    expect(await fleet.lanes.append(runId, 'mine', rows(2, 1))).toMatchObject({ needsFlush: false });
    expect(await fleet.lanes.trim(runId, '2-0')).toEqual({ left: 0 });
    expect(await fleet.lanes.withWork(0, 1_000)).not.toContain(runId);
    expect(await fleet.lanes.append(runId, 'mine', rows(3, 1))).toMatchObject({ needsFlush: true });
  });

  it('brings nothing back of a run that is done', async () => {
    const { runId, leaseId } = await startedRun(fleet, 'mine');
    await fleet.lanes.append(runId, 'mine', rows(1, 1));
    await fleet.runStates.finish(runId, leaseId, { status: 'completed', answer: 'acknowledged' });
    expect(await fleet.lanes.trim(runId, '1-0')).toEqual({ left: 0 });
    expect(await redis.cli('EXISTS', fleet.keys.laneState(runId), fleet.keys.lane(runId))).toBe(0);
  });
});

describe('a flush', () => {
  it('is asked for by exactly one of many appenders at once', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    const answers = await Promise.all(rows(1, 30).map((row) => fleet.lanes.append(runId, 'mine', [row])));
    expect(answers.filter((answer) => answer.outcome === 'appended' && answer.needsFlush)).toHaveLength(1);
  });

  it('is asked for again when an append is repeated, because the first word may have been lost', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    await fleet.lanes.append(runId, 'mine', rows(1, 1));
    expect(await fleet.lanes.append(runId, 'mine', rows(1, 1))).toMatchObject({ needsFlush: true });
  });
});

describe('the sweep', () => {
  it('finds lanes with work, and names each to one of several sweeps only', async () => {
    const own = await startTestRedis();
    const other = await openTestFleet(own);
    const runs = await Promise.all(['a', 'b', 'c', 'd'].map((runId) => startedRun(other, 'mine', { runId })));
    for (const { runId } of runs) await other.lanes.append(runId, 'mine', rows(1, 1));
    expect(await other.lanes.withWork(60_000, 10)).toEqual([]);
    expect((await other.lanes.withWork(0, 10)).toSorted()).toEqual(['a', 'b', 'c', 'd']);
    await own.cli('ZADD', other.keys.lanes, '1', 'a', '2', 'b', '3', 'c', '4', 'd');
    expect(await other.lanes.withWork(1_000, 3)).toEqual(['a', 'b', 'c']);
    expect(await other.lanes.withWork(1_000, 3)).toEqual(['d']);
    await other.close();
    await own.stop();
  });

  it('forgets a lane that has ended by itself', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    await fleet.lanes.append(runId, 'mine', rows(1, 1));
    await redis.cli('DEL', fleet.keys.lane(runId));
    expect(await fleet.lanes.withWork(0, 1_000)).not.toContain(runId);
    expect(await redis.cli('ZSCORE', fleet.keys.lanes, runId)).toBeNull();
    expect(await fleet.lanes.append(runId, 'mine', rows(2, 1))).toMatchObject({ needsFlush: true });
  });
});
