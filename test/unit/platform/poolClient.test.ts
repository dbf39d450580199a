import { afterEach, describe, expect, it } from 'vitest';
import { PlatformHttp } from '../../../src/platform/http.js';
import { PoolClient } from '../../../src/platform/poolClient.js';
import { type Handler, sendJson, startTestServer, type TestServer } from './testServer.js';

const cleanUps: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function pool(
  handler: Handler,
): Promise<{ client: PoolClient; server: TestServer; http: PlatformHttp }> {
  const server = await startTestServer(handler);
  const http = new PlatformHttp({ userAgent: 'test', random: () => 0 });
  cleanUps.push(
    () => server.close(),
    () => http.close(),
  );
  const client = new PoolClient(http, {
    controlPlaneUrl: `${server.url}/base/`,
    runnerToken: 'bwkr_secret',
    runnerVersion: '0.1.0',
  });
  return { client, server, http };
}

const OFFER = {
  assignment_id: 'asg/1',
  run_id: 'run_1',
  org_id: 'org_1',
  runs_on: { kind: 'self-hosted', pool: 'lab', labels: ['gpu'] },
  queued_at: 1_000,
};

const CLAIM = {
  lease_id: 'lse_1',
  run_id: 'run_1',
  workflow_id: 'wf_1',
  environment_id: null,
  workspace_key: null,
  lease_expires_at: 1_893_456_000_000,
  control_plane: { base_url: 'http://127.0.0.1:1', run_token: 'rt_secret', api_token: 'at_secret' },
  env: { REGION: 'north' },
  byo_providers: [],
};

describe('register', () => {
  const registration = {
    registrationToken: 'bwkreg_secret',
    name: 'box',
    labels: ['gpu'],
    os: 'linux',
    arch: 'x64',
    runnerVersion: '0.1.0',
  } as const;

  it('sends the token in the body and no bearer', async () => {
    const { server, http } = await pool((response) =>
      sendJson(response, 201, {
        runner_id: 'rnr_1',
        pool: 'lab',
        runner_token: 'bwkr_1',
        poll: { url: 'http://x/poll', interval_seconds: 5 },
      }),
    );
    const outcome = await PoolClient.register(http, { controlPlaneUrl: server.url, ...registration });
    expect(outcome).toMatchObject({
      outcome: 'registered',
      registration: { runner_id: 'rnr_1', pool: 'lab', runner_token: 'bwkr_1' },
    });
    expect(server.seen[0]).toMatchObject({ method: 'POST', path: '/runner/v1/register' });
    expect(server.seen[0]?.headers.authorization).toBeUndefined();
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual({
      registration_token: 'bwkreg_secret',
      name: 'box',
      labels: ['gpu'],
      os: 'linux',
      arch: 'x64',
      runner_version: '0.1.0',
    });
  });

  it('fails with the message of the server, without the token', async () => {
    const { server, http } = await pool((response) =>
      sendJson(response, 401, { error: { code: 'UNAUTHORIZED', message: 'bwkreg_secret is spent' } }),
    );
    const outcome = await PoolClient.register(http, { controlPlaneUrl: server.url, ...registration });
    expect(outcome).toMatchObject({
      outcome: 'failed',
      error: { status: 401, message: expect.stringContaining('[REDACTED] is spent') as string },
    });
  });

  it('does not quote a success that lacks a field: it may hold the runner token', async () => {
    const { server, http } = await pool((response) =>
      sendJson(response, 201, { runner_token: 'bwkr_fresh' }),
    );
    const outcome = await PoolClient.register(http, { controlPlaneUrl: server.url, ...registration });
    expect(outcome).toMatchObject({ outcome: 'failed', error: { code: 'PLATFORM_INVALID' } });
    expect(JSON.stringify(outcome)).not.toContain('bwkr_fresh');
  });
});

describe('poll', () => {
  it('declares the contract version and takes an offer with keys it does not know (R10)', async () => {
    const { client, server } = await pool((response) =>
      sendJson(response, 200, { assignment: { ...OFFER, brand_new: 1 }, later: true }),
    );
    expect(await client.poll()).toMatchObject({
      outcome: 'offer',
      drain: false,
      offer: { assignment_id: 'asg/1' },
    });
    expect(server.seen[0]).toMatchObject({
      method: 'POST',
      path: '/base/runner/v1/pool/poll',
      headers: { authorization: 'Bearer bwkr_secret', 'content-type': 'application/json' },
    });
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual({ contract_version: 1, runner_version: '0.1.0' });
  });

  it('tells an empty answer and a drain', async () => {
    const { client } = await pool((response, _seen, nth) =>
      sendJson(response, 200, nth === 1 ? { assignment: null } : { assignment: OFFER, action: 'drain' }),
    );
    expect(await client.poll()).toEqual({ outcome: 'empty', drain: false });
    expect(await client.poll()).toMatchObject({ outcome: 'offer', drain: true });
  });

  it.each([401, 403] as const)('is refused by a %i with the message of the server', async (status) => {
    const { client, server } = await pool((response) =>
      sendJson(response, status, { error: { code: 'X', message: 'upgrade to 2.0' } }),
    );
    expect(await client.poll()).toEqual({ outcome: 'refused', status, message: 'upgrade to 2.0' });
    expect(server.seen).toHaveLength(1);
  });

  it('fails on anything else, once, and passes Retry-After on', async () => {
    const { client, server } = await pool((response) => sendJson(response, 503, {}, { 'retry-after': '9' }));
    expect(await client.poll()).toMatchObject({
      outcome: 'failed',
      retryAfterMs: 9_000,
      error: { status: 503 },
    });
    expect(server.seen).toHaveLength(1);
  });

  it('fails on a body without an assignment', async () => {
    const { client } = await pool((response) => sendJson(response, 200, { action: 'continue' }));
    expect(await client.poll()).toMatchObject({ outcome: 'failed', error: { code: 'PLATFORM_INVALID' } });
  });

  it('ends when its signal falls', async () => {
    const stop = new AbortController();
    const { client } = await pool(() => stop.abort());
    expect(await client.poll({ signal: stop.signal })).toMatchObject({
      outcome: 'failed',
      error: { code: 'PLATFORM_ABORTED' },
    });
  });
});

describe('claim', () => {
  it('encodes the id, takes unknown keys and a missing workspace key, and tells the clock of the server', async () => {
    const date = new Date(Date.UTC(2029, 0, 1));
    const older = { ...CLAIM, workspace_key: undefined };
    const { client, server } = await pool((response) =>
      sendJson(response, 200, { ...older, brand_new: 1 }, { date: date.toUTCString() }),
    );
    expect(await client.claim('asg/1')).toMatchObject({
      outcome: 'claimed',
      serverDateMs: date.getTime(),
      claim: { lease_id: 'lse_1', workspace_key: null },
    });
    expect(server.seen[0]?.path).toBe('/base/runner/v1/pool/assignments/asg%2F1/claim');
  });

  it('is lost by a 409', async () => {
    const { client } = await pool((response) => sendJson(response, 409, {}));
    expect(await client.claim('asg_1')).toEqual({ outcome: 'lost' });
  });

  it.each([401, 403, 500])('fails on a %i, which is transient here', async (status) => {
    const { client } = await pool((response) => sendJson(response, status, {}));
    expect(await client.claim('asg_1')).toMatchObject({ outcome: 'failed', error: { status } });
  });

  it('is asked for again when its answer is cut', async () => {
    const { client, server } = await pool((response, _seen, nth) => {
      if (nth === 1) response.destroy();
      else sendJson(response, 200, CLAIM);
    });
    expect(await client.claim('asg_1')).toMatchObject({ outcome: 'claimed' });
    expect(server.seen).toHaveLength(2);
  });

  it('never sends an id that climbs (R13)', async () => {
    const { client, server } = await pool((response) => sendJson(response, 200, CLAIM));
    expect(await client.claim('..')).toMatchObject({
      outcome: 'failed',
      error: { code: 'PLATFORM_INVALID' },
    });
    expect(server.seen).toHaveLength(0);
  });

  it('does not quote an answer that it can not read', async () => {
    const { client } = await pool((response) => sendJson(response, 200, { ...CLAIM, lease_id: 7 }));
    const outcome = await client.claim('asg_1');
    expect(outcome).toMatchObject({ outcome: 'failed', error: { code: 'PLATFORM_INVALID' } });
    const { error } = outcome as { error: Error };
    expect(JSON.stringify(error) + error.message + String(error.stack)).not.toMatch(/rt_secret|at_secret/);
  });
});

describe('heartbeat', () => {
  const beat = { leaseId: 'lse_1', runId: 'run_1', phase: 'preparing' } as const;

  it('sends exactly lease, run and phase', async () => {
    const { client, server } = await pool((response) =>
      sendJson(
        response,
        200,
        { lease_expires_at: 5_000, action: 'cancel' },
        { date: new Date(1_000).toUTCString() },
      ),
    );
    expect(await client.heartbeat(beat)).toEqual({
      outcome: 'renewed',
      leaseExpiresAtMs: 5_000,
      serverDateMs: 1_000,
      action: 'cancel',
    });
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual({
      lease_id: 'lse_1',
      run_id: 'run_1',
      phase: 'preparing',
    });
  });

  it('takes an action that it does not know for continue', async () => {
    const { client } = await pool((response) =>
      sendJson(response, 200, { lease_expires_at: 5_000, action: 'dance' }),
    );
    expect(await client.heartbeat(beat)).toMatchObject({ outcome: 'renewed', action: 'continue' });
  });

  it('is lost by a 409 and fails once on anything else', async () => {
    const { client, server } = await pool((response, _seen, nth) =>
      sendJson(response, nth === 1 ? 409 : 503, {}),
    );
    expect(await client.heartbeat(beat)).toEqual({ outcome: 'lost' });
    expect(await client.heartbeat(beat)).toMatchObject({ outcome: 'failed', error: { status: 503 } });
    expect(server.seen).toHaveLength(2);
  });
});
