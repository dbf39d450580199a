import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PoolClient } from '../../../src/platform/poolClient.js';
import { NOOP, startPlane } from '../../unit/dev/planeWorld.js';
import { startProgram } from '../../support/program.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';
import type { Answering } from './plane.js';
import { World, type WrittenRun } from './world.js';

let redis: TestRedis;
let world: World;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  world = await World.open(redis);
});
afterEach(() => world.close());

/** Numbers in [0, 1) that are the same for the same seed (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A quarter of all calls fails, in every way in which a call can. */
function troubles(random: () => number): () => Answering {
  return () => {
    const dice = random();
    if (dice < 0.06) return { status: 503 };
    if (dice < 0.1) return { status: 500 };
    if (dice < 0.14) return { status: 429, headers: { 'retry-after': '0' } };
    if (dice < 0.19) return 'cut';
    if (dice < 0.25) return 'store_then_cut';
    return undefined;
  };
}

async function writeInParts(run: WrittenRun, rows: number, random: () => number): Promise<void> {
  for (let left = rows; left > 0;) {
    const part = Math.min(left, 1 + Math.floor(random() * 8));
    // Now and then an appender dies before its flush job.
    await run.write(part, { flush: random() > 0.1 });
    left -= part;
  }
  await run.finalize();
}

describe('many runs at once', () => {
  it.each([1, 2, 3])(
    'arrive in order, whole, and finalized last and once, whatever fails and whoever is killed (seed %i)',
    async (seed) => {
      const { plane } = world;
      const random = seeded(seed);
      plane.on(troubles(random));
      const runs = await Promise.all(Array.from({ length: 25 }, () => world.run()));
      const doomed = startProgram('ship', redis.url, world.key, '1500');
      await doomed.line();
      // The shortest back-offs: a lane that fails six times in a row would wait for half a minute otherwise.
      const options = { lockMs: 1_500, maxRows: 7, concurrency: 6, random: () => 0 };
      world.ship(options);
      world.ship(options);
      const writing = Promise.all(runs.map((run) => writeInParts(run, 60, random)));
      await plane.until(() => plane.calls.length > 150);
      doomed.process.kill('SIGKILL');
      await writing;
      await Promise.all(runs.map((run) => world.done(run.id)));

      expect(plane.wrongs).toEqual([]);
      for (const run of runs) {
        expect(plane.rows.get(run.id)).toEqual(run.cursors);
        expect(await world.fleet.runStates.get(run.id)).toMatchObject({ answer: 'acknowledged' });
      }
      expect(plane.finalized.size).toBe(25);
      expect(await world.fleet.lanes.unshipped(100)).toEqual([]);
    },
  );
});

describe('the local control plane', () => {
  it('takes every run of a shipper without a regression, a duplicate or a second finalize', async () => {
    const local = await startPlane();
    local.plane.createRuns({ source: NOOP, count: 10 });
    const runner = await local.runner();
    const pool = new PoolClient(world.http, {
      controlPlaneUrl: local.url,
      runnerToken: runner.token,
      runnerVersion: '0.0.0',
    });
    const runs: WrittenRun[] = [];
    for (let n = 0; n < 10; n++) {
      const polled = await pool.poll();
      if (polled.outcome !== 'offer') throw new Error(`The poll brought no offer: ${polled.outcome}.`);
      const claimed = await pool.claim(polled.offer.assignment_id);
      if (claimed.outcome !== 'claimed') throw new Error(`The claim was not granted: ${claimed.outcome}.`);
      const { run_id: runId, lease_id: leaseId, control_plane: plane } = claimed.claim;
      const workerId = `rnr_1/${leaseId}`;
      const claim = { runId, leaseId, workerId, baseUrl: plane.base_url, runToken: plane.run_token };
      // The control plane has written rows of its own before.
      const run = await world.run(claim, 1);
      await run.holdLease(world.http);
      runs.push(run);
    }
    world.ship({ maxRows: 9 });
    await Promise.all(runs.map((run) => writeInParts(run, 40, Math.random)));
    await Promise.all(runs.map((run) => world.done(run.id)));

    for (const run of runs) {
      const cursors = local.plane.rows(run.id).map((row) => row.cursor);
      expect(cursors).toEqual(expect.arrayContaining([...run.cursors]));
      expect(local.plane.run(run.id)).toMatchObject({ status: 'completed', finalizes: 1 });
    }
    expect(local.plane.report()).toMatchObject({
      by_status: { completed: 10 },
      double_finalized: 0,
      cursor_regressions: 0,
      duplicate_rows: 0,
    });
  });
});
