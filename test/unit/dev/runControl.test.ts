import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { parseRunEventLenient } from '../../../src/contract/events.js';
import { readRunClaim, readVersion } from '../../../src/contract/runControl.js';
import { errorOf, NOOP, startPlane } from './planeWorld.js';

describe('a run token', () => {
  it('opens its own run only', async () => {
    const world = await startPlane();
    const [work, other] = [await world.work(), await world.work()];
    const path = `/runner/v1/runs/${work.runId}/cancel`;
    expect((await world.call('GET', path)).status).toBe(401);
    expect((await world.call('GET', path, { bearer: 'bwkrun_x' })).status).toBe(401);
    const bearer = other.assignment.control_plane.run_token;
    expect((await world.call('GET', path, { bearer })).status).toBe(403);
    expect((await work.call('GET', 'cancel')).body).toEqual({ cancelRequested: false });
  });

  it('finds nothing where nothing is yet', async () => {
    const world = await startPlane();
    const work = await world.work();
    for (const suffix of [
      'children',
      'inputs',
      'schedules',
      'artifacts',
      'mcp/token',
      'workspace/reserve',
      '../..',
    ]) {
      const reply = await work.call('POST', suffix, {});
      expect([suffix, reply.status, errorOf(reply).code]).toEqual([suffix, 404, 'NOT_FOUND']);
    }
    expect((await work.call('GET', 'telemetry')).status).toBe(405);
    expect((await work.call('GET', 'liveview/wanted')).body).toEqual({ wanted: false });
    expect((await work.call('GET', 'credit')).body).toEqual({ funded: true });
    expect((await work.call('GET', 'inference/providers')).body).toEqual({ providers: [] });
  });
});

describe('the run lease', () => {
  it('is granted again to the same worker and to no other', async () => {
    const world = await startPlane();
    const work = await world.work({ input: { a: 1 } });
    const again = await work.claim();
    expect(again.status).toBe(201);
    const claim = readRunClaim(again.body);
    expect(claim).toMatchObject({ lastEventCursor: 1, workflowVersion: 1, environment: null });
    expect(claim.run).toMatchObject({ id: work.runId, attempt: 1, input: { a: 1 }, triggerKind: 'manual' });
    expect((await work.claim('worker-2')).status).toBe(409);
    const body = { workerId: 'worker-1', leaseSeconds: 300, extra: true };
    expect((await work.call('POST', 'renew', body)).status).toBe(200);
    expect((await work.call('POST', 'renew', { ...body, workerId: 'worker-2' })).status).toBe(409);
    const bad = await work.call('POST', 'renew', { workerId: 'worker-1', leaseSeconds: 0 });
    expect([bad.status, errorOf(bad).message.includes('leaseSeconds')]).toEqual([400, true]);
    expect(await world.view(work.runId)).toMatchObject({
      claims: 2,
      worker_ids: ['worker-1'],
      status: 'running',
    });
  });

  it('ends when it is not renewed, although the assignment is kept', async () => {
    const world = await startPlane();
    world.plane.createRuns({ source: NOOP });
    const runner = await world.runner();
    const work = await runner.take();
    expect((await work.claim('worker-1', 1)).status).toBe(201);
    const next = await runner.take();
    expect(next.runId).toBe(work.runId);
    expect((await work.beat()).status).toBe(409);
    expect((await world.report()).expired_leases).toBe(1);
  });
});

describe('an attempt whose lease ran out', () => {
  it('is taken over, and can neither send rows nor keep nor end the run', async () => {
    const world = await startPlane({ leaseMs: 800 });
    const stale = await world.work();
    await stale.send(stale.row(1_000_001, { kind: 'run_status', status: 'running' }));
    const next = await (await world.runner()).take();
    expect(next.runId).toBe(stale.runId);
    expect((await stale.beat()).status).toBe(409);
    expect((await stale.claim()).status).toBe(409);
    expect((await stale.call('POST', 'renew', { workerId: 'worker-1', leaseSeconds: 300 })).status).toBe(409);
    expect((await stale.send(stale.row(1_000_002))).status).toBe(403);
    expect((await stale.call('POST', 'secrets/resolve', { name: 'A' })).status).toBe(403);
    expect((await stale.call('POST', 'inference', { messages: [], tools: [] })).status).toBe(403);
    expect((await stale.finalize('completed', 'stale')).status).toBe(409);

    const claim = readRunClaim((await next.claim()).body);
    expect([claim.run.attempt, claim.lastEventCursor]).toEqual([2, 2_000_001]);
    expect((await next.finalize('completed', 'fresh')).status).toBe(204);
    expect(await world.view(next.runId)).toMatchObject({
      status: 'completed',
      output: 'fresh',
      attempts: 2,
      finalizes: 2,
    });
    expect((await world.rows(next.runId)).map(({ cursor, event }) => [cursor, event['status']])).toEqual([
      [1, 'queued'],
      [1_000_001, 'running'],
      [2_000_001, 'queued'],
      [3_000_001, 'completed'],
    ]);
    expect(await world.report()).toMatchObject({
      expired_leases: 1,
      double_finalized: 0,
      by_status: { completed: 1 },
    });
  });
});

describe('the version', () => {
  it('names a program that can be downloaded and has its digest', async () => {
    const world = await startPlane();
    const work = await world.work({ manifest: { slug: 'my-flow', triggers: [{ kind: 'manual' }] } });
    expect(work.assignment.workflow_id).toBe('wf_my-flow');
    const { manifest, program } = readVersion((await work.call('GET', 'version')).body);
    expect(manifest).toMatchObject({ slug: 'my-flow' });
    const response = await fetch(program.downloadUrl);
    const archive = Buffer.from(await response.arrayBuffer());
    expect(createHash('sha256').update(archive).digest('hex')).toBe(program.digest);
    expect(gunzipSync(archive).toString()).toContain(NOOP);
    expect((await fetch(`${world.url}/programs/none`)).status).toBe(404);
  });

  it('tells what it was given for an archive, also a wrong digest', async () => {
    const world = await startPlane();
    const digest = 'a'.repeat(64);
    const work = await world.work({
      archive: Buffer.from('no archive'),
      entry: '../x.mjs',
      digest,
    });
    const { program } = readVersion((await work.call('GET', 'version')).body);
    expect(program).toMatchObject({ entry: '../x.mjs', digest });
    expect(await (await fetch(program.downloadUrl)).text()).toBe('no archive');
  });
});

describe('telemetry', () => {
  it('keeps the first write of a cursor, and counts what comes twice or too late', async () => {
    const world = await startPlane();
    const work = await world.work();
    const phase = (name: string): object => ({ kind: 'phase', name, id: name });
    await work.send(work.row(1_000_001, { ...phase('a') }), work.row(1_000_003, { ...phase('c') }));
    await work.send(work.row(1_000_003, { ...phase('C') }), work.row(1_000_002, { ...phase('b') }));
    const names = (await world.rows(work.runId)).map(({ cursor, event }) => [cursor, event['name']]);
    expect(names).toEqual([
      [1, undefined],
      [1_000_001, 'a'],
      [1_000_002, 'b'],
      [1_000_003, 'c'],
    ]);
    expect(await world.report()).toMatchObject({ duplicate_rows: 1, cursor_regressions: 1 });
    expect((await world.view(work.runId)).first_event_at).not.toBeNull();
  });

  it('takes kinds that it does not know, and keys', async () => {
    const world = await startPlane();
    const work = await world.work();
    const rows = [
      work.row(1_000_001, { kind: 'dream', of: 'sheep' }),
      work.row(1_000_002, { kind: 'turn_reset', why: 'x' }),
    ];
    expect((await work.send(...rows)).status).toBe(204);
    expect(await world.rows(work.runId)).toMatchObject([{}, ...rows]);
  });

  it.each([
    ['text', 'frames.1: the body is not JSON'],
    ['{}', 'frames.1: cursor'],
    ['{"cursor":2000000,"event":{"kind":"x"}}', 'frames.1: cursor'],
    ['{"cursor":2000001}', 'frames.1: event'],
    ['{"cursor":2000001,"event":{"kind":"x","runId":"run_other","seq":1}}', 'frames.1: event.runId'],
    ['{"cursor":2000001,"event":{"kind":"x","runId":"RUN","seq":2}}', 'frames.1: event.seq'],
    [
      '{"cursor":2000001,"event":{"kind":"phase","runId":"RUN","turnId":"RUN","t":1,"seq":1,"id":"a"}}',
      'frames.1: name',
    ],
  ])('refuses the whole batch for the row %s', async (bad, named) => {
    const world = await startPlane();
    const work = await world.work();
    const frames = [JSON.stringify(work.row(1_000_001)), bad.replaceAll('RUN', work.runId)];
    const reply = await work.call('POST', 'telemetry', { frames });
    expect(reply.status).toBe(400);
    expect(errorOf(reply).message).toContain(named);
    expect(await world.rows(work.runId)).toHaveLength(1);
  });

  it('of more than 5 MiB is refused with 413, and the connection stays good', async () => {
    const world = await startPlane();
    const work = await world.work();
    const reply = await work.call('POST', 'telemetry', { frames: ['x'.repeat(6 * 1024 * 1024)] });
    expect([reply.status, errorOf(reply).code]).toEqual([413, 'TOO_LARGE']);
    const large = work.row(1_000_001, { kind: 'output', value: 'x'.repeat(4 * 1024 * 1024) });
    expect((await work.send(large)).status).toBe(204);
  });

  it('is taken for a while after the run has ended, and then no more', async () => {
    const world = await startPlane();
    const work = await world.work();
    await work.finalize('completed', null);
    expect((await work.send(work.row(1_000_001))).status).toBe(204);
    const strict = await startPlane({ lateRowsMs: 0 });
    const late = await strict.work();
    await late.finalize('completed', null);
    expect((await late.send(late.row(1_000_001))).status).toBe(403);
  });
});

describe('finalize', () => {
  it('ends the run once: a repeat is accepted, another worker or status is not', async () => {
    const world = await startPlane();
    const work = await world.work();
    expect((await work.finalize('completed', { a: 1 }, 'worker-2')).status).toBe(409);
    expect((await work.finalize('completed', { a: 1 })).status).toBe(204);
    expect((await work.finalize('completed', { a: 1 })).status).toBe(204);
    expect((await world.report()).double_finalized).toBe(0);
    expect((await work.finalize('completed', { a: 1 }, 'worker-2')).status).toBe(409);
    expect((await world.report()).double_finalized).toBe(1);
    expect((await work.finalize('failed', { error: { code: 'X', message: 'x' } })).status).toBe(409);
    expect((await work.claim()).status).toBe(409);
    expect(await world.report()).toMatchObject({ double_finalized: 1, by_status: { completed: 1 } });
    const view = await world.view(work.runId);
    expect(view).toMatchObject({ status: 'completed', output: { a: 1 }, error: null, finalizes: 5 });
    expect(view.finalized_at).toBeGreaterThanOrEqual(view.claimed_at ?? 0);
  });

  it('with another output is a second one, and the first stays', async () => {
    const world = await startPlane();
    const work = await world.work();
    await work.finalize('completed', 1);
    expect((await work.finalize('completed', 2)).status).toBe(204);
    expect((await world.view(work.runId)).output).toBe(1);
    expect((await world.report()).double_finalized).toBe(1);
  });

  it('tells the error of a failed run, in its view and its last row', async () => {
    const world = await startPlane();
    const work = await world.work();
    const done = world.plane.whenDone(work.runId);
    const error = { code: 'TYPE_ERROR', message: 'no', hint: 'yes' };
    await work.finalize('failed', { error: { ...error, stack: 'x' } });
    expect(await done).toMatchObject({ status: 'failed', output: null, error });
    const last = (await world.rows(work.runId)).at(-1)?.event;
    expect(parseRunEventLenient(last)).toMatchObject({ kind: 'run_status', status: 'failed', error });
    const mute = await world.work();
    await mute.finalize('failed', null);
    expect((await world.plane.whenDone(mute.runId)).error?.code).toBe('INTERNAL_ERROR');
  });

  it('needs the run to be claimed', async () => {
    const world = await startPlane();
    world.plane.createRuns({ source: NOOP });
    const work = await (await world.runner()).take();
    expect((await work.finalize('completed', 1)).status).toBe(409);
    expect((await work.send(work.row(1_000_001))).status).toBe(403);
  });
});

describe('cancelling', () => {
  it('ends a run that waits at once', async () => {
    const world = await startPlane({ pollHoldMs: 1 });
    const [runId = ''] = world.plane.createRuns({ source: NOOP });
    expect((await world.admin('POST', `runs/${runId}/cancel`)).body).toEqual({ status: 'cancelled' });
    expect((await (await world.runner()).pool('poll')).body).toEqual({ assignment: null });
    expect((await world.rows(runId)).map(({ event }) => event['status'])).toEqual(['queued', 'cancelled']);
  });

  it('asks a run that works to stop, which then ends as cancelled', async () => {
    const world = await startPlane();
    const work = await world.work();
    expect((await world.admin('POST', `runs/${work.runId}/cancel`)).body).toEqual({ status: 'cancelling' });
    expect((await work.call('GET', 'cancel')).body).toEqual({ cancelRequested: true });
    const error = { code: 'RUN_ABORTED', reason: 'cancelled', message: 'Run stopped: cancelled' };
    await work.finalize('failed', { error });
    expect(await world.view(work.runId)).toMatchObject({
      status: 'cancelled',
      error: { code: 'RUN_ABORTED' },
    });
    expect((await world.admin('POST', `runs/${work.runId}/cancel`)).body).toEqual({ status: 'cancelled' });
  });

  it('comes too late for a run that completes, and ends one whose lease runs out', async () => {
    const world = await startPlane({ leaseMs: 800 });
    const done = await world.work();
    world.plane.cancel(done.runId);
    await done.finalize('completed', 1);
    expect((await world.view(done.runId)).status).toBe('completed');
    const lost = await world.work();
    world.plane.cancel(lost.runId);
    expect(await world.plane.whenDone(lost.runId)).toMatchObject({ status: 'cancelled', attempts: 1 });
  });
});

describe('secrets and usage', () => {
  it('resolves what is there and granted, and leaves references out of the environment', async () => {
    const world = await startPlane();
    const manifest = {
      env: { REGION: 'north', KEY: '${{ secrets.KEY }}' },
      permissions: { secrets: [{ name: 'KEY' }, { name: 'GONE' }] },
    };
    const work = await world.work({ manifest, secrets: { KEY: 'k-1', OTHER: 'o-1' } });
    expect(work.assignment.env).toEqual({ REGION: 'north' });
    const resolve = (name: string) => work.call('POST', 'secrets/resolve', { name });
    expect(await resolve('KEY')).toEqual({ status: 200, body: { value: 'k-1' } });
    expect((await resolve('OTHER')).status).toBe(403);
    expect((await resolve('GONE')).status).toBe(404);
    expect((await resolve('')).status).toBe(400);
  });

  it('grants every given secret where no manifest is given', async () => {
    const world = await startPlane();
    const work = await world.work({ secrets: { KEY: 'k-1' } });
    expect((await work.call('POST', 'secrets/resolve', { name: 'KEY' })).body).toEqual({ value: 'k-1' });
  });

  it('counts a usage report once, with its larger value', async () => {
    const world = await startPlane();
    const work = await world.work();
    for (const runtimeSeconds of [3, 5, 4])
      await work.call('POST', 'usage', { runtimeSeconds, identifier: 'i:0' });
    await work.call('POST', 'usage', { runtimeSeconds: 2, identifier: 'i:1' });
    const tokens = { inputTokens: 10, outputTokens: 2, identifier: 't:1', model: 'm' };
    for (let n = 0; n < 2; n += 1) expect((await work.call('POST', 'usage/tokens', tokens)).status).toBe(204);
    const { usage } = await world.view(work.runId);
    expect(usage).toMatchObject({ runtime_seconds: 7, input_tokens: 10, output_tokens: 2 });
  });
});
