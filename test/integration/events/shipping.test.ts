import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestRedis, type TestRedis } from '../../support/redis.js';
import { COMPLETED, gate, World } from './world.js';

let redis: TestRedis;
let world: World;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  world = await World.open(redis);
});
afterEach(async () => {
  await world.close();
  expect(world.plane.wrongs).toEqual([]);
});

describe('a lane', () => {
  it('is shipped in order, its finalize last, in the name of the claim; then nothing of it is left', async () => {
    const { plane } = world;
    const run = await world.run({ runToken: 'token-of-the-claim' });
    await run.write(3);
    await run.write(2);
    await run.finalize();
    const shipper = world.ship();
    const record = await world.done(run.id);

    expect(plane.rows.get(run.id)).toEqual([1, 2, 3, 4, 5]);
    expect(plane.finalized.get(run.id)).toEqual({
      ...COMPLETED,
      workerId: run.claim.workerId,
      token: 'token-of-the-claim',
    });
    expect(plane.calls.map((call) => call.endpoint)).toEqual(['telemetry', 'finalize']);
    expect(record).toMatchObject({ status: 'completed', answer: 'acknowledged' });
    const keys = [...(await redis.dump()).keys()];
    expect(keys.filter((key) => key.includes(run.id) && !key.includes(':run:'))).toEqual([]);
    expect(await world.fleet.lanes.unshipped(10)).toEqual([]);
    expect(shipper.counts).toEqual({ rowsShipped: 5, runsFinished: 1, rowsSetAside: 0, lanesParked: 0 });
  });

  it('has one batch in flight; what gathers meanwhile goes together', async () => {
    const { plane } = world;
    const run = await world.run();
    const first = gate<undefined>();
    plane.on(() => (plane.calls.length === 1 ? first.opened : undefined));
    world.ship();
    await run.write(1);
    await plane.until(() => plane.calls.length === 1);
    for (let i = 0; i < 20; i++) await run.write(1);
    expect(plane.calls).toHaveLength(1);
    first.open(undefined);
    await plane.until(() => plane.rows.get(run.id)?.length === 21);
    expect(plane.calls.map((call) => call.cursors.length)).toEqual([1, 20]);
  });

  it('goes in batches within the bounds of rows and of the encoded body', async () => {
    const { plane } = world;
    const run = await world.run();
    await run.write(Array.from({ length: 40 }, (_, index) => (index < 20 ? 'short' : '"\\'.repeat(200))));
    world.ship({ maxRows: 15, maxBodyBytes: 4_000 });
    await plane.until(() => plane.rows.get(run.id)?.length === 40);
    const sizes = plane.calls.map((call) => Buffer.byteLength(JSON.stringify(call.body)));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4_000);
    expect(Math.max(...plane.calls.map((call) => call.cursors.length))).toBe(15);
    expect(plane.rows.get(run.id)).toEqual(run.cursors);
  });

  it('that waits for nobody’s flush job is found by the sweep (P17)', async () => {
    const run = await world.run();
    await run.write(2, { flush: false });
    expect(await world.fleet.flushes.counts()).toMatchObject({ waiting: 0, delayed: 0 });
    world.ship();
    await world.plane.until((plane) => plane.rows.get(run.id)?.length === 2);
  });

  it('that is long gives its place to others that wait', async () => {
    const { plane } = world;
    const long = await world.run();
    const short = await world.run();
    await long.write(40);
    await short.write(1);
    world.ship({ concurrency: 1, maxRows: 2, turnBatches: 3 });
    await plane.until(() => plane.rows.get(long.id)?.length === 40);
    const turns = plane.calls.map((call) => (call.runId === long.id ? 'long' : 'short'));
    expect(turns.slice(0, 4)).toEqual(['long', 'long', 'long', 'short']);
  });
});

describe('a row that is refused', () => {
  it.each([413, 400])(
    'with %i is set aside alone, and reported; all others go on in order (P50, P51)',
    async (status) => {
      const { plane } = world;
      const poison = new Set([1, 7, 8, 40]);
      plane.on((call) => (call.cursors.some((cursor) => poison.has(cursor)) ? { status } : undefined));
      const run = await world.run();
      await run.write(40);
      await run.finalize();
      const shipper = world.ship();
      await world.done(run.id);

      expect(plane.rows.get(run.id)).toEqual(run.cursors.filter((cursor) => !poison.has(cursor)));
      expect(plane.finalized.has(run.id)).toBe(true);
      const aside = await world.setAside(run.id);
      expect([...aside.keys()].toSorted((a, b) => a - b)).toEqual([...poison]);
      expect(aside.get(7)).toMatchObject({ v: 1, status });
      expect(aside.get(7)?.['body']).toContain('as the test wants it');
      expect(JSON.parse(String(aside.get(7)?.['frame']))).toMatchObject({ cursor: 7 });
      expect(shipper.counts).toMatchObject({ rowsSetAside: 4, rowsShipped: 36 });
      const reported = world.lines.all.filter((line) => line.level === 50);
      expect(reported.map((line) => line['cursor'])).toEqual([...poison]);
      expect(reported[0]).toMatchObject({ runId: run.id, status });
    },
  );
});

describe('a call that fails', () => {
  it('is made again until it is answered; nothing is lost and nothing overtakes (P48, R7, R17)', async () => {
    const { plane } = world;
    const troubles = [{ status: 500 }, 'cut', 'store_then_cut', { status: 503 }, { status: 429 }] as const;
    let telemetry = 0;
    let finalize = 0;
    plane.on(({ endpoint }) => troubles[endpoint === 'finalize' ? finalize++ : telemetry++]);
    const run = await world.run();
    await run.write(3);
    world.ship({ random: () => 0 });
    await plane.until(() => telemetry === 2);
    await run.write(2);
    // Each try comes when it is due, and no wait of a test needs to be that long.
    await expect.poll(() => wakeAndCount(run.id), { timeout: 30_000, interval: 20 }).toBe(5);
    await run.finalize();
    await expect
      .poll(() => wakeAndCount(run.id).then(() => plane.finalized.has(run.id)), { timeout: 30_000 })
      .toBe(true);
    await expect.poll(() => wakeAndCount(run.id).then(() => finalize), { timeout: 30_000 }).toBe(6);
    expect(await world.done(run.id)).toMatchObject({ answer: 'acknowledged' });
    expect(plane.rows.get(run.id)).toEqual([1, 2, 3, 4, 5]);
    expect(plane.callsTo('telemetry', run.id)[0]?.cursors).toEqual([1, 2, 3]);
  });

  it('keeps its lane waiting as long as it was asked to', async () => {
    const { plane } = world;
    plane.on(() => ({ status: 503, headers: { 'retry-after': '9' } }));
    const run = await world.run();
    await run.write(1);
    world.ship();
    await expect.poll(() => world.fleet.flushes.counts()).toMatchObject({ delayed: 1 });
    const delayMs = Number(await redis.cli('HGET', '{bwf:test}:flush:1', 'delay'));
    expect(delayMs).toBeGreaterThanOrEqual(9_000);
    expect(delayMs).toBeLessThanOrEqual(15_000);
  });

  it('by an outage lets no lane wait longer than that: the first success wakes all', async () => {
    const { plane, lines } = world;
    let away = true;
    const scout = await world.run();
    const herald = await world.run();
    const others = await Promise.all(Array.from({ length: 20 }, () => world.run()));
    plane.on(({ runId }) =>
      !away ? undefined : { status: 503, headers: runId === scout.id ? {} : { 'retry-after': '3600' } },
    );
    for (const run of [...others, scout]) await run.write(2);
    world.ship();
    // Its fourth try is more than a second after its first.
    await plane.until(() => plane.callsTo('telemetry', scout.id).length >= 4);
    away = false;
    await herald.write(2);
    await plane.until(() => [...others, scout].every((run) => plane.rows.get(run.id)?.length === 2));
    await lines.until('lanes are woken');
    expect(others.map((run) => plane.callsTo('telemetry', run.id).length)).toEqual(others.map(() => 2));
    expect(lines.all.filter((line) => line.msg.includes('events are not taken'))).toHaveLength(1);
  });
});

async function wakeAndCount(runId: string): Promise<number> {
  await world.fleet.flushes.wakeDelayed();
  return world.plane.rows.get(runId)?.length ?? 0;
}
