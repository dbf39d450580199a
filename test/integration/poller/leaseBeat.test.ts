import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LeaseBeat } from '../../../src/poller/leaseBeat.js';
import type { RunCredential } from '../../../src/queue/fleet.js';
import { sendJson } from '../../unit/platform/testServer.js';
import { openWorld, POOL, type World } from './world.js';

/** Short enough that beats follow each other quickly; the interval is a third of it. */
const LEASE_MS = 450;

let world: World;
let beat: LeaseBeat;
let drains: number;

beforeEach(async () => {
  world = await openWorld();
  world.api.leaseMs = LEASE_MS;
  drains = 0;
  beat = new LeaseBeat({
    runStates: world.fleet.runStates,
    poolClient: world.client,
    log: world.lines.log,
    onDrain: () => (drains += 1),
    random: () => 0,
  });
  beat.start();
});

afterEach(async () => {
  await beat.stop({ deadline: performance.now() });
  await world.close();
});

function credential(runId: string, leaseId: string, leaseExpiresAtMs = Date.now() + LEASE_MS): RunCredential {
  return {
    v: 1,
    runId,
    assignmentId: 'asg_1',
    leaseId,
    runnerId: 'rnr_1',
    workflowId: 'wf_1',
    environmentId: null,
    workspaceKey: null,
    pool: POOL,
    controlPlaneUrl: world.api.url,
    baseUrl: world.api.url,
    runToken: 't',
    apiToken: 't',
    workerId: 'rnr_1/asg_1',
    env: {},
    byoProviders: [],
    claimedAtMs: Date.now(),
    leaseExpiresAtMs,
  };
}

async function claimed(runId: string, leaseId = `lse_${runId}`): Promise<void> {
  await world.fleet.runStates.recordClaim(credential(runId, leaseId));
  beat.keep({ runId, leaseId, leaseExpiresAtMs: Date.now() + LEASE_MS, serverDateMs: null });
}

async function attemptOf(runId: string): Promise<string> {
  const attemptToken = `token_${runId}`;
  await world.fleet.runStates.startAttempt({
    runId,
    leaseId: `lse_${runId}`,
    executorId: 'exe_1',
    attemptToken,
  });
  return attemptToken;
}

function beats(): Record<string, unknown>[] {
  return world.api.seen.heartbeat.map((seen) => JSON.parse(seen.body) as Record<string, unknown>);
}

function eventually(check: () => void | Promise<void>): Promise<void> {
  return vi.waitFor(check, { timeout: 10_000, interval: 10 });
}

/** Waits for a beat with a phase that comes after what was seen so far. */
async function nextPhase(phase: string): Promise<void> {
  for (;;) {
    await world.api.asked('heartbeat', world.api.seen.heartbeat.length + 1);
    if (beats().at(-1)?.['phase'] === phase) return;
  }
}

describe('a kept lease', () => {
  it('is beaten with the phase of its run until the run is done (P26, R22)', async () => {
    await claimed('run_1');
    await nextPhase('preparing');
    const token = await attemptOf('run_1');
    await nextPhase('preparing');
    await world.fleet.runStates.setRunning('run_1', token, 1);
    await nextPhase('running');
    await world.fleet.lanes.appendFinalize('run_1', token, '{}');
    await nextPhase('finalizing');
    await world.fleet.runStates.finish('run_1', 'lse_run_1', { status: 'completed', answer: 'acknowledged' });
    await eventually(() => expect(beat.size).toBe(0));
    expect(beats()[0]).toEqual({ lease_id: 'lse_run_1', run_id: 'run_1', phase: 'preparing' });
  });

  it('is marked lost in the run record by a 409, and beaten no more', async () => {
    world.api.on('heartbeat', (response) => sendJson(response, 409, {}));
    await claimed('run_1');
    await attemptOf('run_1');
    await world.lines.until('lease lost');
    await eventually(() => expect(beat.size).toBe(0));
    expect((await world.fleet.runStates.get('run_1'))?.leaseLostAtMs).not.toBeNull();
    expect(beats()).toHaveLength(1);
  });

  it('only ends by a 409 while the run finishes: the finalize has closed the assignment', async () => {
    world.api.on('heartbeat', (response) => sendJson(response, 409, {}));
    await claimed('run_1');
    await world.fleet.lanes.appendFinalize('run_1', await attemptOf('run_1'), '{}');
    await eventually(() => expect(beat.size).toBe(0));
    expect((await world.fleet.runStates.get('run_1'))?.leaseLostAtMs).toBeNull();
  });

  it('is dropped when an attempt has stepped back from it', async () => {
    await claimed('run_1');
    await world.fleet.runStates.markLeaseLost('run_1', 'lse_run_1');
    await eventually(() => expect(beat.size).toBe(0));
    expect(beats()).toHaveLength(0);
  });

  it('is dropped when its run was claimed anew, here or elsewhere', async () => {
    await claimed('run_1', 'lse_old');
    await world.fleet.runStates.recordClaim(credential('run_1', 'lse_new', Date.now() + 200_000));
    await eventually(() => expect(beat.size).toBe(0));
    await claimed('run_2', 'lse_a');
    await world.fleet.runStates.recordClaim(credential('run_2', 'lse_b', Date.now() + 200_000));
    beat.keep({
      runId: 'run_2',
      leaseId: 'lse_b',
      leaseExpiresAtMs: Date.now() + LEASE_MS,
      serverDateMs: null,
    });
    expect(beat.size).toBe(1);
  });

  it('hands a cancel on to the attempt and a drain to the process', async () => {
    world.api.on('heartbeat', (response, _body, nth) =>
      sendJson(response, 200, {
        lease_expires_at: Date.now() + LEASE_MS,
        action: nth === 1 ? 'cancel' : 'drain',
      }),
    );
    await claimed('run_1');
    await eventually(() => expect(drains).toBeGreaterThan(0));
    await eventually(async () =>
      expect((await world.fleet.runStates.get('run_1'))?.cancelRequestedAtMs).not.toBeNull(),
    );
    expect(beat.size).toBe(1);
  });
});

describe('trouble', () => {
  it('of the control plane is waited out, and said once', async () => {
    world.api.on('heartbeat', (response, _body, nth) => {
      if (nth < 3) sendJson(response, 500, {});
      else if (nth === 3) response.destroy();
      else sendJson(response, 200, { lease_expires_at: Date.now() + LEASE_MS, action: 'continue' });
    });
    await claimed('run_1');
    await world.lines.until('beaten again');
    expect(world.lines.all.filter((line) => line.msg.includes('not beaten'))).toHaveLength(1);
    expect(beat.size).toBe(1);
  });

  it('of Redis does not end the beats: they say what they said before', async () => {
    await claimed('run_1');
    await world.fleet.runStates.setRunning('run_1', await attemptOf('run_1'), 1);
    await nextPhase('running');
    await world.redis.kill();
    await nextPhase('running');
    await world.redis.start();
  });

  it('of Redis does not lose a 409: it is recorded when Redis is back', async () => {
    world.api.on('heartbeat', (response) => {
      void world.redis.kill().then(() => sendJson(response, 409, {}));
    });
    await claimed('run_1');
    await world.api.asked('heartbeat', 1);
    await world.redis.start();
    await world.lines.until('lease lost');
    expect((await world.fleet.runStates.get('run_1'))?.leaseLostAtMs).not.toBeNull();
    expect(beats()).toHaveLength(1);
  });
});

describe('many leases', () => {
  it('that fall due together are beaten a bounded number at a time, and all of them', async () => {
    let open = 0;
    let most = 0;
    world.api.on('heartbeat', (response) => {
      open += 1;
      most = Math.max(most, open);
      setImmediate(() => {
        open -= 1;
        sendJson(response, 200, { lease_expires_at: Date.now() + 300_000, action: 'continue' });
      });
    });
    const ids = Array.from({ length: 300 }, (_, index) => `run_${index}`);
    await Promise.all(ids.map((id) => claimed(id)));
    // On a slow machine the first ones are due again before the last ones had their turn.
    const beaten = () => new Set(beats().map((one) => one['run_id'])).size;
    await expect.poll(beaten, { timeout: 20_000 }).toBe(300);
    expect(most).toBeLessThanOrEqual(64);
    expect(beat.size).toBe(300);
  });
});

describe('stopping', () => {
  it('goes on beating until the runs are done', async () => {
    await claimed('run_1');
    const stopped = beat.stop({ deadline: Infinity });
    await world.api.asked('heartbeat', 2);
    await world.fleet.runStates.finish('run_1', 'lse_run_1', { status: 'failed', answer: 'acknowledged' });
    await stopped;
    expect(beat.size).toBe(0);
  });

  it('ends at its deadline, which may be brought forward, and cuts a beat under way', async () => {
    world.api.on('heartbeat', () => undefined);
    await claimed('run_1');
    await world.api.asked('heartbeat', 1);
    const patient = beat.stop({ deadline: Infinity });
    await beat.stop({ deadline: performance.now() });
    await patient;
    expect(await world.lines.until('beaten no more')).toMatchObject({ leases: 1, runs: ['run_1'] });
  });

  it('takes no lease on afterwards', async () => {
    await beat.stop({ deadline: performance.now() });
    await claimed('run_1');
    expect(beat.size).toBe(0);
  });
});
