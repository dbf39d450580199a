// One hash tag on all keys of a fleet, shown on a Redis that is a cluster of one node: it owns every slot, and refuses
// a script or transaction whose keys lie in two.

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Fleet, RunsConsumer, TakenRun } from '../../../src/queue/fleet.js';
import { openTestFleet, jobOf, someClaim } from '../../support/fleet.js';
import { freePort } from '../../support/freePort.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';

let redis: TestRedis;
let fleet: Fleet;
beforeAll(async () => {
  const busPort = String(await freePort());
  redis = await startTestRedis({ args: ['--cluster-enabled', 'yes', '--cluster-port', busPort] });
  await redis.cli('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
  while (!String(await redis.cli('CLUSTER', 'INFO')).includes('cluster_state:ok'));
  fleet = await openTestFleet(redis);
});
afterAll(async () => {
  await fleet.close();
  await redis.stop();
});

it('a cluster refuses keys of two slots', async () => {
  await expect(redis.cli('MSET', 'one', '1', 'two', '2')).rejects.toThrow('CROSSSLOT');
});

it('a run goes its whole way on a cluster, and every key that it leaves has the tag of its fleet (P5)', async () => {
  const claim = someClaim({ runId: 'run_1', pool: 'eu:north/1', leaseId: 'lse:1' });
  const { runId, leaseId } = claim;
  await fleet.credentials.putIdentity({
    runnerId: 'rnr_1',
    runnerToken: 'token',
    controlPlaneUrl: 'http://x',
    pool: claim.pool,
  });
  await fleet.runStates.recordClaim(claim);
  await fleet.runs.add(jobOf(claim));
  await fleet.runs.add(jobOf(someClaim({ pool: claim.pool })));

  const consumer = fleet.runs.consumer(claim.pool, { lockMs: 60_000, stalledCheckMs: 12_000 });
  consumer.start();
  const worker = fleet.flushes.worker(() => Promise.resolve('drained'), { concurrency: 2 });
  worker.start();
  try {
    const taken = await takeOne(consumer);
    const { queueName, jobId, lockToken } = taken;
    const attempt = {
      runId,
      leaseId,
      executorId: 'exe_1',
      attemptToken: 'mine',
      lock: { queueName, jobId, lockToken },
    };
    expect(await fleet.runStates.startAttempt(attempt)).toMatchObject({ outcome: 'started' });
    const renewal = { ...attempt, queue: queueName, jobId, lockToken, lockMs: 60_000 };
    expect(await fleet.runStates.renewAttempt(renewal)).toMatchObject({ outcome: 'renewed' });
    expect(await taken.complete()).toBe('completed');

    const rows = [1, 2].map((cursor) => ({ cursor, frame: 'row' }));
    expect(await fleet.lanes.append(runId, 'mine', rows)).toMatchObject({ outcome: 'appended' });
    await fleet.lanes.setAside(runId, { cursor: 1, frame: 'row' }, { status: 400, body: 'no' }, 1);
    await fleet.lanes.trim(runId, '1-0');
    expect(await fleet.lanes.appendFinalize(runId, 'mine', '{}')).toMatchObject({ outcome: 'appended' });
    await fleet.flushes.add(runId);
    await expect.poll(() => fleet.flushes.counts()).toEqual({ waiting: 0, active: 0, delayed: 0 });
    await fleet.flushes.add('run_waits');

    const keys = [...(await redis.dump()).keys()];
    expect(keys.filter((key) => !key.startsWith('{bwf:test}:'))).toEqual([]);
    // That there was something to see: what the fleet keeps itself, and what the queue library does.
    const made = fleet.keys;
    expect(keys).toEqual(
      expect.arrayContaining([
        ...[made.lanes, made.run(runId), made.credential(runId), made.identity('rnr_1')],
        ...[made.lane(runId), made.laneState(runId), made.deadLetters(runId)],
        ...[made.runsQueue(claim.pool), made.eventsQueue].map((queue) => `${made.prefix}:${queue}:meta`),
      ]),
    );
  } finally {
    await consumer.stop();
    await worker.stop();
  }
});

async function takeOne(consumer: RunsConsumer): Promise<TakenRun> {
  for (;;) {
    const taken = await consumer.take(new AbortController().signal);
    if (taken !== null) return taken;
  }
}
