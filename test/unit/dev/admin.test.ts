import { describe, expect, it } from 'vitest';
import { ControlPlane } from '../../../src/dev/controlPlane/controlPlane.js';
import { errorOf, NOOP, startPlane } from './planeWorld.js';

describe('the admin API', () => {
  it('takes the admin token and no other', async () => {
    const world = await startPlane();
    for (const bearer of [undefined, '', 'bwkadm_x', world.registrationToken]) {
      const reply = await world.call('GET', '/dev/v1/report', bearer === undefined ? {} : { bearer });
      expect(reply.status).toBe(401);
    }
    expect((await world.admin('GET', 'report')).status).toBe(200);
  });

  it('makes runs, shows them and their rows, and reports', async () => {
    const world = await startPlane();
    const created = await world.admin('POST', 'runs', { source: NOOP, count: 3, input: [1], workflow: '..' });
    const { run_ids } = created.body as { run_ids: string[] };
    expect(new Set(run_ids).size).toBe(3);
    const view = await world.view(run_ids[0] ?? '');
    expect(view).toEqual({
      status: 'queued',
      output: null,
      error: null,
      attempts: 1,
      claims: 0,
      finalizes: 0,
      worker_ids: [],
      queued_at: expect.any(Number) as number,
      claimed_at: null,
      first_event_at: null,
      finalized_at: null,
      usage: { runtime_seconds: 0, input_tokens: 0, output_tokens: 0, model_calls: 0, cost_micros: 0 },
    });
    expect(await world.rows(run_ids[0] ?? '')).toMatchObject([
      { cursor: 1, event: { kind: 'run_status', status: 'queued', seq: 1 } },
    ]);
    const { requests, ...counts } = await world.report();
    expect(counts).toEqual({
      by_status: { queued: 3 },
      double_finalized: 0,
      cursor_regressions: 0,
      duplicate_rows: 0,
      expired_leases: 0,
    });
    expect(requests['POST /dev/v1/runs']).toEqual({ 201: 1 });
    // Hostile ids are for the runner to refuse.
    expect((await (await world.runner()).take()).assignment.workflow_id).toBe('..');
  });

  it.each([
    [{}, 'source'],
    [{ source: NOOP, sources: 1 }, 'sources'],
    [{ source: NOOP, count: 0 }, 'count'],
    [{ source: NOOP, env: { A: 1 } }, 'env.A'],
    [{ source: NOOP, script: [{ steps: [{ text: 1 }] }] }, 'script[0].steps[0].text'],
  ])('refuses %j and names the field', async (body, named) => {
    const world = await startPlane();
    const reply = await world.admin('POST', 'runs', body);
    expect(reply.status).toBe(400);
    expect(errorOf(reply).message).toContain(named);
    expect((await world.report()).by_status).toEqual({});
  });

  it('says what it does not know', async () => {
    const world = await startPlane();
    expect((await world.admin('GET', 'runs/run_x')).status).toBe(404);
    expect((await world.admin('GET', 'runs/run_x/events')).status).toBe(404);
    expect((await world.admin('POST', 'runs/run_x/cancel')).status).toBe(404);
    expect((await world.admin('DELETE', 'report')).status).toBe(405);
    expect((await world.call('GET', '/')).status).toBe(404);
  });
});

describe('the control plane in this process', () => {
  it('tells each row as it is stored, and when a run is over', async () => {
    const world = await startPlane();
    const seen: string[] = [];
    const off = world.plane.onRow((runId, { cursor, event }) =>
      seen.push(`${runId} ${cursor} ${event.kind}`),
    );
    const work = await world.work();
    const done = world.plane.whenDone(work.runId);
    await work.send(work.row(1_000_001), work.row(1_000_001));
    await work.finalize('completed', { ok: true });
    expect((await done).output).toEqual({ ok: true });
    expect(seen).toEqual(
      [1, 1_000_001, 2_000_001].map(
        (cursor) => `${work.runId} ${cursor} ${cursor === 1_000_001 ? 'phase' : 'run_status'}`,
      ),
    );
    off();
    world.plane.createRuns({ source: NOOP });
    expect(seen).toHaveLength(3);
    expect(world.plane.rows(work.runId)).toHaveLength(3);
    expect(() => world.plane.run('run_x')).toThrow(/no run/);
  });

  it('stops with polls held and runs unfinished, twice, and started or not', async () => {
    const world = await startPlane();
    const runner = await world.runner();
    const held = runner.pool('poll');
    await world.report();
    const [runId = ''] = world.plane.createRuns({ source: NOOP, labels: ['none'] });
    const done = world.plane.whenDone(runId);
    const stopping = world.plane.stop();
    expect((await held).body).toEqual({ assignment: null });
    await expect(done).rejects.toThrow(/stopped/);
    await Promise.all([stopping, world.plane.stop()]);
    await new ControlPlane().stop();
  });

  it('names the port that is taken', async () => {
    const world = await startPlane();
    const second = new ControlPlane({ port: Number(new URL(world.url).port) });
    await expect(second.start()).rejects.toMatchObject({ code: 'PORT_UNAVAILABLE' });
    await second.stop();
  });
});
