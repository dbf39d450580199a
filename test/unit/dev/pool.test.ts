import { describe, expect, it } from 'vitest';
import {
  claimResponseSchema,
  heartbeatResponseSchema,
  pollResponseSchema,
  registerResponseSchema,
} from '../../../src/contract/pool.js';
import { DECLARATION, errorOf, NOOP, startPlane, TestWork } from './planeWorld.js';

describe('registering', () => {
  it('takes a registration token once', async () => {
    const world = await startPlane();
    const body = { registration_token: world.registrationToken, name: 'box', labels: ['gpu'] };
    const first = await world.call('POST', '/runner/v1/register', { body });
    expect(first.status).toBe(201);
    expect(registerResponseSchema.parse(first.body).pool).toBe('default');
    const second = await world.call('POST', '/runner/v1/register', { body });
    expect([second.status, errorOf(second).code]).toEqual([401, 'UNAUTHORIZED']);
  });

  it.each([
    [{ name: 'box' }, 'registration_token'],
    [{ registration_token: 'x', name: '' }, 'name'],
    [{ registration_token: 'x', name: 'box', pool: 'p' }, 'pool'],
    [{ registration_token: 'x', name: 'box', labels: ['a', 7] }, 'labels.1'],
    ['{"registration_token"', 'not JSON'],
    [[], 'the body'],
  ])('refuses %j and names what is wrong', async (body, named) => {
    const world = await startPlane();
    const reply = await world.call('POST', '/runner/v1/register', { body });
    expect(reply.status).toBe(400);
    expect(errorOf(reply).message).toContain(named);
  });

  it('ends with deregister', async () => {
    const world = await startPlane();
    const runner = await world.runner();
    const held = runner.pool('poll');
    expect((await runner.pool('deregister', {})).status).toBe(204);
    expect([200, 401]).toContain((await held).status);
    expect((await runner.pool('poll')).status).toBe(401);
    expect((await runner.pool('deregister', {})).status).toBe(401);
  });
});

describe('polling', () => {
  it('needs a runner token and an exact declaration, or none at all', async () => {
    const world = await startPlane({ pollHoldMs: 1 });
    const runner = await world.runner();
    expect((await world.call('POST', '/runner/v1/pool/poll', { body: DECLARATION })).status).toBe(401);
    expect((await world.call('POST', '/runner/v1/pool/poll', { bearer: 'bwkr_x' })).status).toBe(401);
    const surplus = await runner.pool('poll', { ...DECLARATION, channel: 'stable' });
    expect([surplus.status, errorOf(surplus).message.includes('channel')]).toEqual([400, true]);
    expect((await runner.pool('poll', { contract_version: 0, runner_version: '1' })).status).toBe(400);
    expect(await runner.pool('poll', {})).toEqual({ status: 200, body: { assignment: null } });
    expect((await runner.pool('poll', '')).status).toBe(200);
  });

  it('is held until a run appears', async () => {
    const world = await startPlane();
    const runner = await world.runner();
    const held = runner.pool('poll');
    await world.runner();
    const [runId] = world.plane.createRuns({ source: NOOP });
    const { assignment } = pollResponseSchema.parse((await held).body);
    expect(assignment?.run_id).toBe(runId);
    expect(assignment?.runs_on).toEqual({ kind: 'self-hosted', pool: 'default' });
  });

  it('gives runs out in the order in which they became ready, each once', async () => {
    const world = await startPlane({ pollHoldMs: 1 });
    const runner = await world.runner();
    const ids = world.plane.createRuns({ source: NOOP, count: 5 });
    const offered = [];
    for (let n = 0; n < 5; n += 1) offered.push((await runner.offer()).run_id);
    expect(offered).toEqual(ids);
    expect((await runner.pool('poll')).body).toEqual({ assignment: null });
  });

  it('offers a run only to runners of its pool that have its labels', async () => {
    const world = await startPlane({ pollHoldMs: 1 });
    const plain = await world.runner();
    const gpu = await world.runner({ labels: ['gpu', 'lab'] });
    const elsewhere = await world.runner({ labels: ['gpu'], pool: 'lab' });
    const [runId] = world.plane.createRuns({ source: NOOP, labels: ['gpu'] });
    expect((await plain.pool('poll')).body).toEqual({ assignment: null });
    expect((await elsewhere.pool('poll')).body).toEqual({ assignment: null });
    const offer = await gpu.offer();
    expect(offer.run_id).toBe(runId);
    expect((await plain.pool(`assignments/${offer.assignment_id}/claim`)).status).toBe(404);
    expect((await elsewhere.pool(`assignments/${offer.assignment_id}/claim`)).status).toBe(404);
    expect((await gpu.pool(`assignments/${offer.assignment_id}/claim`)).status).toBe(200);
  });

  it('offers a run again that nobody claims', async () => {
    const world = await startPlane({ offerMs: 20 });
    const [runner, other] = [await world.runner(), await world.runner()];
    world.plane.createRuns({ source: NOOP });
    const first = await runner.offer();
    expect((await other.offer()).assignment_id).toBe(first.assignment_id);
  });

  it('gives no run to a client that has hung up', async () => {
    const world = await startPlane();
    const [gone, other] = [await world.runner(), await world.runner()];
    const hangUp = new AbortController();
    const polling = gone.pool('poll', DECLARATION, hangUp.signal).catch(() => 'gone');
    const seen = async (): Promise<unknown> =>
      (await world.report()).requests['POST /runner/v1/pool/poll']?.['aborted'];
    // One request of its own makes sure that the poll before it has arrived.
    await world.report();
    hangUp.abort();
    expect(await polling).toBe('gone');
    while ((await seen()) === undefined) await world.report();
    const [runId] = world.plane.createRuns({ source: NOOP });
    expect((await other.offer()).run_id).toBe(runId);
  });

  it('is told to drain, also while it is held, and later runners are not', async () => {
    const world = await startPlane();
    const work = await world.work();
    const held = work.runner.pool('poll');
    await world.report();
    expect((await world.admin('POST', 'drain')).status).toBe(200);
    const drain = { assignment: null, action: 'drain' };
    expect(pollResponseSchema.parse((await held).body)).toEqual(drain);
    expect((await work.runner.pool('poll')).body).toEqual(drain);
    expect((await work.beat()).body).toMatchObject({ action: 'drain' });
    const later = await world.runner();
    const [runId] = world.plane.createRuns({ source: NOOP });
    expect((await later.offer()).run_id).toBe(runId);
  });
});

describe('claiming', () => {
  it('is won by exactly one of many who try at once, and repeated by none', async () => {
    const world = await startPlane();
    const runners = await Promise.all(Array.from({ length: 8 }, () => world.runner()));
    world.plane.createRuns({ source: NOOP });
    const offer = await runners[0]?.offer();
    const tries = [...runners, ...runners].map((runner) =>
      runner.pool(`assignments/${offer?.assignment_id ?? ''}/claim`),
    );
    const statuses = (await Promise.all(tries)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(15);
  });

  it('answers in the shape of the request’s own declaration', async () => {
    const world = await startPlane();
    const runner = await world.runner();
    world.plane.createRuns({ source: NOOP, count: 2, env: { REGION: 'north' } });
    const [first, second] = [await runner.offer(), await runner.offer()];
    const declared = await runner.pool(`assignments/${first.assignment_id}/claim`);
    const claim = claimResponseSchema.parse(declared.body);
    expect(claim).toMatchObject({ workspace_key: null, env: { REGION: 'north' }, byo_providers: [] });
    const undeclared = await runner.pool(`assignments/${second.assignment_id}/claim`, {});
    expect(undeclared.status).toBe(200);
    expect(undeclared.body).not.toHaveProperty('workspace_key');
    claimResponseSchema.parse({ ...(undeclared.body as object), workspace_key: null });
  });

  it('is refused for a run that was withdrawn, and unknown for one that never was', async () => {
    const world = await startPlane();
    const runner = await world.runner();
    const [runId = ''] = world.plane.createRuns({ source: NOOP });
    const { assignment_id } = await runner.offer();
    world.plane.cancel(runId);
    expect((await runner.pool(`assignments/${assignment_id}/claim`)).status).toBe(409);
    expect((await runner.pool('assignments/asg_none/claim')).status).toBe(404);
    expect((await runner.pool('assignments/%zz/claim')).status).toBe(400);
  });
});

describe('a heartbeat', () => {
  it('moves the deadline, and says when the run is to be cancelled', async () => {
    const world = await startPlane();
    const work = await world.work();
    const first = heartbeatResponseSchema.parse((await work.beat('preparing')).body);
    expect(first.action).toBe('continue');
    expect(first.lease_expires_at).toBeGreaterThanOrEqual(work.assignment.lease_expires_at);
    world.plane.cancel(work.runId);
    expect((await work.beat()).body).toMatchObject({ action: 'cancel' });
  });

  it('is exact, and refused for a lease that is not the runner’s or is over', async () => {
    const world = await startPlane();
    const work = await world.work();
    const { lease_id, run_id } = work.assignment;
    const bad = await work.runner.pool('heartbeat', { lease_id, run_id, phase: 'sleeping' });
    expect([bad.status, errorOf(bad).message.includes('phase')]).toEqual([400, true]);
    const surplus = { lease_id, run_id, phase: 'running', runner_id: 'x' };
    expect((await work.runner.pool('heartbeat', surplus)).status).toBe(400);
    const stranger = new TestWork(await world.runner(), work.assignment);
    expect((await stranger.beat()).status).toBe(409);
    const mixed = { lease_id, run_id: 'run_x', phase: 'running' };
    expect((await work.runner.pool('heartbeat', mixed)).status).toBe(409);
    await work.finalize('completed', 1);
    expect((await work.beat()).status).toBe(409);
  });
});
