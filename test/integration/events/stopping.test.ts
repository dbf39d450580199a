import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Shipper } from '../../../src/events/shipper.js';
import { startProgram } from '../../support/program.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';
import { gate, World } from './world.js';

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

const inAMinute = () => ({ deadline: performance.now() + 60_000 });

describe('a shipper that stops', () => {
  it('ships what is in the lanes first, also what was backing off (P21)', async () => {
    const { plane, fleet } = world;
    let away = true;
    plane.on(() => (away ? { status: 503, headers: { 'retry-after': '3600' } } : undefined));
    const runs = await Promise.all(Array.from({ length: 10 }, () => world.run()));
    for (const run of runs) {
      await run.write(5);
      await run.finalize();
    }
    const shipper = world.ship();
    await expect.poll(() => fleet.flushes.counts(), { timeout: 10_000 }).toMatchObject({ delayed: 10 });
    away = false;
    await shipper.stop(inAMinute());
    expect(plane.finalized.size).toBe(10);
    expect(await fleet.lanes.unshipped(100)).toEqual([]);
  });

  it('finishes the batch in flight and leaves the rest of the lane when its time is over', async () => {
    const { plane } = world;
    const answer = gate<undefined>();
    plane.on(() => answer.opened);
    const run = await world.run();
    await run.write(10);
    const shipper = world.ship({ maxRows: 4 });
    await plane.until(() => plane.calls.length === 1);
    const stopped = shipper.stop(inAMinute());
    answer.open(undefined);
    await stopped;
    expect(plane.rows.get(run.id)).toEqual(run.cursors);
    expect(await world.lane(run.id)).toEqual([]);
  });

  it('breaks a call off at its deadline, and another ships the lane from its head at once', async () => {
    const { plane, fleet } = world;
    const never = gate<undefined>();
    plane.on(() => (plane.calls.length === 1 ? never.opened : undefined));
    const run = await world.run();
    await run.write(3);
    const shipper = world.ship();
    await plane.until(() => plane.calls.length === 1);
    const patient = shipper.stop({ deadline: Infinity });
    expect(await world.lines.until('shipper is stopping')).toMatchObject({ lanes: 1 });
    await shipper.stop({ deadline: performance.now() });
    await patient;
    expect(await world.lane(run.id)).toEqual([1, 2, 3]);
    // No lock of the first one is left to lapse.
    expect(await fleet.flushes.counts()).toMatchObject({ active: 0 });
    world.ship();
    await plane.until(() => plane.rows.get(run.id)?.length === 3);
    expect(await world.lines.until('left to other shippers')).toMatchObject({ lanes: 1 });
  });

  it('waits for no lane that is parked, and for none that gets rows all the time', async () => {
    const { plane, lines } = world;
    const parked = await world.run({ runToken: 'bad' });
    const busy = await world.run();
    plane.on((call) => (call.token === 'bad' ? { status: 401 } : undefined));
    await parked.write(1);
    const shipper = world.ship();
    await lines.until('parked');
    let stopped = false;
    const writing = (async () => {
      while (!stopped) await busy.write(1).then(() => delay(5));
    })();
    await shipper.stop({ deadline: Infinity });
    stopped = true;
    await writing;
  });

  it('ends while Redis is away, too, with however much time it has (P22, P25)', async () => {
    const own = await startTestRedis();
    const apart = await World.open(own);
    const shipper = apart.ship();
    await own.kill();
    await shipper.stop({ deadline: Infinity });
    expect(await apart.lines.until('Redis does not answer')).toMatchObject({ level: 40 });
    await apart.close();
    await own.stop();
  });

  it('may be started and stopped twice, stopped before it was started, and starts no more then', async () => {
    const { fleet, http, lines } = world;
    const shipper = new Shipper({ fleet, http, log: lines.log });
    await shipper.stop(inAMinute());
    shipper.start();
    const other = world.ship();
    other.start();
    await Promise.all([other.stop(inAMinute()), other.stop(inAMinute())]);
    await other.stop({ deadline: performance.now() });
    const run = await world.run();
    await run.write(1);
    expect(await fleet.flushes.counts()).toMatchObject({ waiting: 1, active: 0 });
    expect(lines.all.filter((line) => line.msg === 'shipper ready')).toHaveLength(1);
  });
});

describe('a shipper that loses a lane', () => {
  it('breaks its call off when the lock of the job is another’s (P12)', async () => {
    const { plane } = world;
    const never = gate<undefined>();
    plane.on(() => (plane.calls.length === 1 ? never.opened : undefined));
    const run = await world.run();
    await run.write(3);
    world.ship({ lockMs: 600 });
    await plane.until(() => plane.calls.length === 1);
    await redis.cli('SET', '{bwf:test}:flush:1:lock', 'another', 'PX', '500');
    // Whoever that was is gone by then.
    await plane.until(() => plane.calls.length === 2);
    expect(plane.brokenOff).toBe(1);
  });

  it('to kill -9 in the middle of a batch has a successor, who begins at the head', async () => {
    const { plane } = world;
    const never = gate<undefined>();
    let holding = true;
    plane.on(() => (holding ? never.opened : undefined));
    const runs = await Promise.all(Array.from({ length: 4 }, () => world.run()));
    for (const run of runs) {
      await run.write(20);
      await run.finalize();
    }
    const first = startProgram('ship', redis.url, world.key, '1000');
    await plane.until(() => plane.calls.length === 4);
    first.process.kill('SIGKILL');
    await first.ended;
    holding = false;
    world.ship({ lockMs: 1_000 });
    await Promise.all(runs.map((run) => world.done(run.id)));
    for (const run of runs) expect(plane.rows.get(run.id)).toEqual(run.cursors);
    expect(plane.callsTo('telemetry').length).toBeGreaterThanOrEqual(8);
  });
});
