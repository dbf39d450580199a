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

const refuse = (token: string, status: number) => (call: { readonly token: string }) =>
  call.token === token ? { status } : undefined;

describe('a token that is refused', () => {
  it.each([401, 403, 404])('with %i gives way to the one of a newer claim', async (status) => {
    const { plane } = world;
    const answer = gate<{ status: number }>();
    plane.on((call) => (call.token === 'old' ? answer.opened : undefined));
    const run = await world.run({ runToken: 'old' });
    await run.write(3);
    world.ship();
    await plane.until(() => plane.calls.length === 1);
    await run.claimAnew('new');
    await run.start();
    answer.open({ status });
    await run.write(2);
    await run.finalize();
    await world.done(run.id);
    expect(plane.rows.get(run.id)).toEqual([1, 2, 3, 4, 5]);
    expect(plane.finalized.get(run.id)).toMatchObject({ token: 'new', workerId: run.claim.workerId });
  });

  it('parks the lane: kept, reported, both leases let go, left alone by sweeps', async () => {
    const { plane, lines, fleet } = world;
    plane.on(refuse('bad', 401));
    const run = await world.run({ runToken: 'bad' });
    await run.write(3);
    const shipper = world.ship({ sweepMs: 50 });
    const line = await lines.until('parked');
    await expect.poll(() => fleet.flushes.counts()).toEqual({ waiting: 0, active: 0, delayed: 0 });

    expect(line).toMatchObject({ level: 50, runId: run.id, why: expect.stringContaining('401') as unknown });
    expect(await world.lane(run.id)).toEqual([1, 2, 3]);
    expect(await fleet.lanes.unshipped(10)).toEqual([]);
    expect(await fleet.lanes.withWork(0, 10)).toEqual([]);
    expect((await fleet.runStates.get(run.id))?.leaseLostAtMs).not.toBeNull();
    expect(shipper.counts.lanesParked).toBe(1);
    expect(plane.calls).toHaveLength(1);
  });

  it.each([401, 404, 409])(
    'with %i for a while only gives nothing up: all of it arrives, finalize last',
    async (status) => {
      const { plane, lines, fleet } = world;
      plane.on(() => (plane.calls.length <= 3 ? { status } : undefined));
      const run = await world.run();
      await run.write(3);
      await run.finalize();
      world.ship({ refusalMs: 60_000 });
      await world.done(run.id);
      expect(plane.rows.get(run.id)).toEqual([1, 2, 3]);
      expect(plane.finalized.get(run.id)).toMatchObject(COMPLETED);
      expect(lines.all.filter((line) => line.msg.includes('parked'))).toEqual([]);
      expect((await fleet.runStates.get(run.id))?.leaseLostAtMs).toBeNull();
    },
  );

  it('parks the lane until a new claim of the run ships what is in it, before its own rows', async () => {
    const { plane, lines } = world;
    plane.on(refuse('bad', 403));
    const run = await world.run({ runToken: 'bad' });
    await run.write(3);
    world.ship();
    await lines.until('parked');
    await run.claimAnew('good');
    await run.start();
    await run.write(2);
    await run.finalize();
    await world.done(run.id);
    expect(plane.rows.get(run.id)).toEqual([1, 2, 3, 4, 5]);
    expect(plane.finalized.get(run.id)).toMatchObject({ token: 'good' });
  });

  it('of a claim that still waits for its attempt is no reason to give the claim up', async () => {
    const { plane, fleet } = world;
    let leaseTaken = false;
    plane.on((call) => (leaseTaken || call.token === 'old' ? undefined : { status: 403 }));
    const run = await world.run({ runToken: 'old' });
    await run.write(3, { flush: false });
    await run.claimAnew('new');
    world.ship();
    await plane.until(() => plane.calls.length === 2);
    expect(await fleet.runStates.get(run.id)).toMatchObject({ phase: 'queued', leaseLostAtMs: null });
    leaseTaken = true;
    expect(await run.start()).toBe('started');
    await run.write(1);
    await plane.until(() => plane.rows.get(run.id)?.length === 4);
    expect(plane.rows.get(run.id)).toEqual([1, 2, 3, 4]);
  });

  it('of a run without any credential parks the lane', async () => {
    const run = await world.run();
    await run.write(2);
    await redis.cli('DEL', world.fleet.keys.credential(run.id));
    world.ship();
    expect(await world.lines.until('parked')).toMatchObject({ runId: run.id });
    expect(await world.lane(run.id)).toEqual([1, 2]);
    expect(world.plane.calls).toEqual([]);
  });
});

describe('a finalize', () => {
  it('that an earlier claim left is sent under the run lease of the newer one; nothing runs again', async () => {
    const { plane } = world;
    const holders = new Set<string>();
    plane.on((call) => {
      if (call.endpoint === 'claim') holders.add(call.token);
      if (holders.has(call.token)) return undefined;
      return { status: call.endpoint === 'finalize' ? 409 : 403 };
    });
    const run = await world.run({ runToken: 'old' });
    await run.write(3);
    await run.finalize();
    await run.claimAnew('new');
    expect(await run.start()).toBe('finalizing');
    await world.fleet.flushes.add(run.id);
    world.ship();
    expect(await world.done(run.id)).toMatchObject({ status: 'completed', answer: 'acknowledged' });
    expect(plane.rows.get(run.id)).toEqual([1, 2, 3]);
    expect(plane.finalized.get(run.id)).toEqual({
      ...COMPLETED,
      token: 'new',
      workerId: run.claim.workerId,
    });
    expect(plane.callsTo('claim').map((call) => call.body['workerId'])).toEqual([run.claim.workerId]);
  });

  it('is not sent when the run lease was lost: the lane waits for whoever gets the run', async () => {
    const { plane, lines, fleet } = world;
    const run = await world.run();
    await run.finalize();
    await fleet.runStates.markLeaseLost(run.id, run.claim.leaseId);
    world.ship();
    await lines.until('parked');
    expect(plane.calls).toEqual([]);
    expect(await world.lane(run.id)).toEqual(['finalize']);
  });

  it('of a run that another has finished is dropped, and that is on record', async () => {
    const { plane, lines } = world;
    plane.on((call) => (call.endpoint === 'finalize' ? { status: 409 } : undefined));
    const run = await world.run();
    await run.write(1);
    await run.finalize();
    world.ship();
    expect(await world.done(run.id)).toMatchObject({ answer: 'other_owner' });
    expect(await lines.until('another owner')).toMatchObject({ runId: run.id });
    expect(await world.lane(run.id)).toEqual([]);
  });

  it.each([400, 413])(
    'whose result is refused with %i fails the run instead, with the reason',
    async (status) => {
      const { plane, lines } = world;
      plane.on((call) => (call.body['status'] === 'completed' ? { status } : undefined));
      const run = await world.run();
      await run.finalize();
      world.ship();
      expect(await world.done(run.id)).toMatchObject({ status: 'failed', answer: 'acknowledged' });
      expect(plane.finalized.get(run.id)).toMatchObject({
        status: 'failed',
        output: {
          error: { code: 'VALIDATION_FAILED', message: expect.stringContaining(String(status)) as unknown },
        },
        workerId: run.claim.workerId,
      });
      expect(await lines.until('refuses the result')).toMatchObject({ level: 50, runId: run.id, status });
    },
  );

  it('that is refused whatever it says ends the run on our side, reported', async () => {
    const { plane, lines } = world;
    plane.on(() => ({ status: 400 }));
    const run = await world.run();
    await run.finalize();
    world.ship();
    expect(await world.done(run.id)).toMatchObject({ status: 'failed', answer: 'refused' });
    expect(plane.callsTo('finalize')).toHaveLength(2);
    await lines.until('it is given up');
  });

  it('is sent in the name of the newest claim at that time', async () => {
    const { plane } = world;
    const answer = gate<undefined>();
    const run = await world.run({ runToken: 'old' });
    plane.on((call) => (call.endpoint === 'telemetry' ? answer.opened : undefined));
    await run.write(1);
    await run.finalize();
    world.ship();
    await plane.until(() => plane.calls.length === 1);
    await run.claimAnew('new');
    answer.open(undefined);
    await world.done(run.id);
    expect(plane.finalized.get(run.id)).toMatchObject({ token: 'new', workerId: run.claim.workerId });
  });
});
