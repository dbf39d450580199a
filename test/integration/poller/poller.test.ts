import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Poller, type PollerOptions } from '../../../src/poller/poller.js';
import { sendJson } from '../../unit/platform/testServer.js';
import { offer, openWorld, POOL, type World } from './world.js';

let world: World;
const pollers: Poller[] = [];

beforeEach(async () => {
  world = await openWorld();
});

afterEach(async () => {
  await Promise.all(pollers.splice(0).map((poller) => poller.stop({ deadline: performance.now() })));
  await world.close();
});

function makePoller(more: Partial<PollerOptions> = {}): Poller {
  const { fleet, client: poolClient, identity, lines } = world;
  const poller = new Poller({ fleet, poolClient, identity, log: lines.log, random: () => 0, ...more });
  pollers.push(poller);
  return poller;
}

/** The polls answer with these offers, one each, then are held. */
function offerRuns(...ids: readonly (string | number)[]): void {
  world.api.on('poll', (response, _body, nth) => {
    const id = ids[nth - 1];
    if (id !== undefined) sendJson(response, 200, { assignment: offer(id) });
  });
}

const now = (): { deadline: number } => ({ deadline: performance.now() });

describe('a claim', () => {
  it('is sealed, recorded and queued, and its lease is beaten', async () => {
    await world.putExecutor(4);
    offerRuns(1);
    const poller = makePoller();
    await poller.start();
    await world.lines.until('run claimed and queued');

    expect(await world.fleet.runs.depth(POOL)).toMatchObject({ waiting: 1, active: 0 });
    expect(await world.fleet.runStates.get('run_1')).toMatchObject({ phase: 'queued', leaseId: 'lse_1' });
    expect(await world.fleet.credentials.run('run_1')).toMatchObject({
      runId: 'run_1',
      assignmentId: 'asg_1',
      runToken: 'rt_secret_1',
      workerId: 'rnr_1/asg_1',
      pool: POOL,
      baseUrl: world.api.url,
    });
    expect(poller.leases).toBe(1);
  });

  it('leaves no token in clear in Redis or in the log', async () => {
    await world.putExecutor(4);
    offerRuns(1);
    await makePoller().start();
    await world.lines.until('run claimed and queued');

    const dump = [...(await world.redis.dump()).values()].join('\n');
    const log = JSON.stringify(world.lines.all);
    for (const secret of ['rt_secret', 'at_secret', 'bwkr_secret', 'env_secret']) {
      expect(dump).not.toContain(secret);
      expect(log).not.toContain(secret);
    }
    expect(await world.fleet.credentials.identity('rnr_1')).toEqual({
      runnerId: 'rnr_1',
      runnerToken: 'bwkr_secret',
      controlPlaneUrl: world.api.url,
      pool: POOL,
    });
  });

  it('is not made while no executor is ready, and made when one is', async () => {
    await world.putExecutor(4, 'draining');
    offerRuns(1);
    await makePoller().start();
    await world.lines.until('no executor is ready');
    expect(world.api.seen.poll).toHaveLength(0);
    await world.putExecutor(4);
    await world.lines.until('run claimed and queued');
  });

  it('waits for a free slot: what is queued and what runs both count', async () => {
    await world.putExecutor(1);
    offerRuns(1, 2);
    await makePoller().start();
    await world.lines.until('run claimed and queued');

    const consumer = world.fleet.runs.consumer(POOL, { lockMs: 30_000, stalledCheckMs: 30_000 });
    consumer.start();
    const taken = await consumer.take(new AbortController().signal);
    expect(world.api.seen.poll).toHaveLength(1);
    await taken?.complete();
    await world.api.asked('poll', 2);
    await consumer.stop();
  });

  it('is not made of an offer that comes after the slots have gone', async () => {
    await world.putExecutor(1);
    world.api.on('poll', (response, _body, nth) => {
      if (nth > 1) return;
      // Longer than a permit is believed.
      setTimeout(() => {
        void world.fleet.executors
          .remove('exe_1')
          .then(() => sendJson(response, 200, { assignment: offer(1) }));
      }, 300);
    });
    await makePoller().start();
    await world.lines.until('offer left to others');
    expect(world.api.seen.claim).toHaveLength(0);
  });

  it('with an id that climbs is let go, loudly and without a heartbeat, and others go on (R13)', async () => {
    await world.putExecutor(4);
    world.api.leaseMs = 300;
    offerRuns(1, 2);
    world.api.on('claim', (response, _body, nth) =>
      sendJson(response, 200, world.api.claimBody(`asg_${nth}`, nth === 1 ? { run_id: '..' } : {})),
    );
    const poller = makePoller();
    await poller.start();
    expect(await world.lines.until('can not be executed here')).toMatchObject({ level: 50 });
    await world.api.asked('heartbeat', 2);
    expect(world.api.seen.heartbeat.map((seen) => JSON.parse(seen.body) as unknown)).not.toContainEqual(
      expect.objectContaining({ lease_id: 'lse_1' }),
    );
    expect(poller.leases).toBe(1);
    expect(await world.fleet.runs.depth(POOL)).toMatchObject({ waiting: 1 });
  });

  it('survives a Redis that is away between claim and queue', async () => {
    await world.putExecutor(4);
    offerRuns(1);
    world.api.on('claim', (response) => {
      void world.redis.kill().then(() => sendJson(response, 200, world.api.claimBody('asg_1')));
    });
    await makePoller().start();
    await world.api.asked('claim', 1);
    await world.redis.start();
    await world.lines.until('run claimed and queued');
    expect(await world.fleet.runs.depth(POOL)).toMatchObject({ waiting: 1 });
  });

  it('is let go when its lease ends before Redis is back', async () => {
    await world.putExecutor(4);
    offerRuns(1);
    world.api.leaseMs = 200;
    world.api.on('claim', (response) => {
      void world.redis.kill().then(() => sendJson(response, 200, world.api.claimBody('asg_1')));
    });
    const poller = makePoller();
    await poller.start();
    await world.lines.until('could not be queued while its lease lived');
    expect(poller.leases).toBe(0);
    expect(world.api.seen.heartbeat).toHaveLength(0);
    await world.redis.start();
  });

  it('that is older than what the fleet knows of the run is let go', async () => {
    await world.putExecutor(4);
    offerRuns(1, 2);
    const late = Date.now() + 299_000;
    world.api.on('claim', (response, _body, nth) =>
      sendJson(
        response,
        200,
        world.api.claimBody(`asg_${nth}`, {
          run_id: 'run_1',
          lease_expires_at: nth === 1 ? late : late - 60_000,
        }),
      ),
    );
    const poller = makePoller();
    await poller.start();
    await world.lines.until('older than what the fleet knows');
    expect(poller.leases).toBe(1);
  });
});

describe('polling', () => {
  it('calls itself online after the first accepted poll, once', async () => {
    await world.putExecutor(4);
    let online = 0;
    world.api.on('poll', (response, _body, nth) => {
      if (nth === 1) {
        expect(online).toBe(0);
        sendJson(response, 500, {});
      } else if (nth < 4) sendJson(response, 200, { assignment: null });
    });
    await makePoller({ onOnline: () => (online += 1) }).start();
    await world.api.asked('poll', 4);
    expect(online).toBe(1);
  });

  it.each([401, 403])('ends on a %i with the message of the server, without being online', async (status) => {
    await world.putExecutor(4);
    let online = false;
    world.api.on('poll', (response) =>
      sendJson(response, status, { error: { code: 'X', message: 'upgrade me' } }),
    );
    const poller = makePoller({ onOnline: () => (online = true) });
    await poller.start();
    expect(await poller.ended).toEqual({ reason: 'refused', status, message: 'upgrade me' });
    expect(online).toBe(false);
    expect(world.api.seen.poll).toHaveLength(1);
  });

  it('goes on after failures of polls and claims, 401 and 403 of a claim among them', async () => {
    await world.putExecutor(4);
    world.api.on('poll', (response, _body, nth) => {
      if (nth === 1) response.end('garbage');
      else if (nth === 2) response.destroy();
      else if (nth < 7) sendJson(response, 200, { assignment: offer(nth) });
    });
    world.api.on('claim', (response, _body, nth) => {
      if (nth < 3) sendJson(response, nth === 1 ? 401 : 403, {});
      else if (nth === 3) sendJson(response, 200, { nonsense: true });
      else sendJson(response, 200, world.api.claimBody('asg_9'));
    });
    await makePoller().start();
    await world.lines.until('run claimed and queued');
    expect(world.api.seen.claim).toHaveLength(4);
  });

  it('is paced when answers without an offer, or lost claims, come at once (R21)', async () => {
    await world.putExecutor(4);
    world.api.on('poll', (response, _body, nth) => {
      if (nth < 5) sendJson(response, 200, { assignment: nth % 2 === 0 ? offer(nth) : null });
    });
    world.api.on('claim', (response) => sendJson(response, 409, {}));
    const startedAt = performance.now();
    await makePoller().start();
    await world.api.asked('poll', 5);
    // A lower bound: four answers that brought nothing take a quarter of a second each; timers may be 1 ms early.
    expect(performance.now() - startedAt).toBeGreaterThan(990);
  });

  it('ends when the control plane says drain, and leaves the offer that came with it (R8)', async () => {
    await world.putExecutor(4);
    world.api.on('poll', (response) => sendJson(response, 200, { assignment: offer(1), action: 'drain' }));
    const poller = makePoller();
    await poller.start();
    expect(await poller.ended).toEqual({ reason: 'drain' });
    expect(world.api.seen.claim).toHaveLength(0);
  });

  it('ends when a heartbeat says drain, and goes on beating', async () => {
    await world.putExecutor(4);
    world.api.leaseMs = 300;
    offerRuns(1);
    world.api.on('heartbeat', (response) =>
      sendJson(response, 200, { lease_expires_at: Date.now() + 300, action: 'drain' }),
    );
    const poller = makePoller();
    await poller.start();
    expect(await poller.ended).toEqual({ reason: 'drain' });
    await world.api.asked('heartbeat', 3);
  });

  it('with once ends after one run that was queued; a lost claim does not count', async () => {
    await world.putExecutor(4);
    offerRuns(1, 2, 3);
    world.api.on('claim', (response, _body, nth) =>
      nth === 1 ? sendJson(response, 409, {}) : sendJson(response, 200, world.api.claimBody(`asg_${nth}`)),
    );
    const poller = makePoller({ once: true });
    await poller.start();
    expect(await poller.ended).toEqual({ reason: 'once', runId: 'run_2' });
    expect(world.api.seen.poll).toHaveLength(2);
  });
});

describe('stopping', () => {
  it('aborts the poll under way', async () => {
    await world.putExecutor(4);
    let tellClosed: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => (tellClosed = resolve));
    world.api.on('poll', (response) => void response.on('close', tellClosed));
    const poller = makePoller();
    await poller.start();
    await world.api.asked('poll', 1);
    await poller.stop({ deadline: Infinity });
    await closed;
    expect(await poller.ended).toEqual({ reason: 'stopped' });
  });

  it('queues a claim that was under way, and waits for its run', async () => {
    await world.putExecutor(4);
    offerRuns(1);
    const stopped: { promise?: Promise<void> } = {};
    const poller = makePoller();
    world.api.on('claim', (response) => {
      stopped.promise = poller.stop({ deadline: Infinity });
      sendJson(response, 200, world.api.claimBody('asg_1'));
    });
    await poller.start();
    await world.lines.until('run claimed and queued');
    await world.fleet.runStates.finish('run_1', 'lse_1', { status: 'completed', answer: 'acknowledged' });
    await stopped.promise;
    expect(poller.leases).toBe(0);
  });

  it('ends at its deadline although runs are not done, and says so', async () => {
    await world.putExecutor(4);
    offerRuns(1);
    const poller = makePoller();
    await poller.start();
    await world.lines.until('run claimed and queued');
    const patient = poller.stop({ deadline: Infinity });
    await poller.stop(now());
    await patient;
    expect(await world.lines.until('beaten no more')).toMatchObject({ runs: ['run_1'] });
  });

  it('is possible before the start, twice, and while Redis is away', async () => {
    const idle = makePoller();
    await idle.stop(now());
    await idle.stop(now());
    expect(await idle.ended).toEqual({ reason: 'stopped' });

    await world.putExecutor(4);
    const busy = makePoller();
    await busy.start();
    await world.api.asked('poll', 1);
    await world.redis.kill();
    await busy.stop(now());
    await world.redis.start();
  });
});
