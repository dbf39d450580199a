import { afterEach, describe, expect, it } from 'vitest';
import { PlatformHttp } from '../../../src/platform/http.js';
import { RunClient } from '../../../src/platform/runClient.js';
import { type Handler, sendJson, startTestServer, type TestServer } from './testServer.js';

const cleanUps: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function run(handler: Handler): Promise<{ client: RunClient; server: TestServer }> {
  const server = await startTestServer(handler);
  const http = new PlatformHttp({ userAgent: 'test', random: () => 0 });
  cleanUps.push(
    () => server.close(),
    () => http.close(),
  );
  return {
    client: new RunClient(http, { baseUrl: `${server.url}/`, runId: 'run 1', runToken: 'rt_secret' }),
    server,
  };
}

const RUN = {
  id: 'run 1',
  orgId: 'org_1',
  workflowId: 'wf_1',
  workflowVersionId: 'wfv_1',
  environmentId: null,
  attempt: 2,
  actor: { type: 'user', user_id: 'usr_1' },
  triggerKind: 'manual',
  input: { a: 1 },
  triggerPayload: null,
  createdAt: 1_000,
};

const LEASE = { workerId: 'rnr_1/asg_1', leaseSeconds: 300 };

describe('the run lease', () => {
  it('is claimed with the worker id', async () => {
    const { client, server } = await run((response) =>
      sendJson(response, 201, { run: RUN, leaseUntil: 9_000, lastEventCursor: 7, unknown: 1 }),
    );
    expect(await client.claim(LEASE)).toMatchObject({
      outcome: 'claimed',
      claim: { run: { id: 'run 1', attempt: 2 }, leaseUntil: 9_000, lastEventCursor: 7 },
    });
    expect(server.seen[0]).toMatchObject({
      method: 'POST',
      path: '/runner/v1/runs/run%201/claim',
      headers: { authorization: 'Bearer rt_secret' },
    });
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual(LEASE);
  });

  it('is asked for again after a 502: a repeat by the same worker is safe', async () => {
    const { client } = await run((response, _seen, nth) =>
      sendJson(response, nth === 1 ? 502 : 201, { run: RUN }),
    );
    expect(await client.claim(LEASE)).toMatchObject({ outcome: 'claimed' });
  });

  it('is held by another on a 409', async () => {
    const { client } = await run((response) => sendJson(response, 409, {}));
    expect(await client.claim(LEASE)).toEqual({ outcome: 'held' });
  });

  it('is refused to a token that is not good any more, and not had on a 500', async () => {
    const body = { error: { code: 'FORBIDDEN', message: 'no' } };
    const { client } = await run((response, _seen, nth) => sendJson(response, nth === 1 ? 403 : 500, body));
    expect(await client.claim(LEASE)).toMatchObject({ outcome: 'refused', status: 403 });
    expect(await client.claim(LEASE)).toMatchObject({ outcome: 'failed', error: { status: 500 } });
  });

  it('is renewed, or lost by a 409', async () => {
    const { client } = await run((response, _seen, nth) =>
      nth === 1 ? sendJson(response, 200, { leaseUntil: 9_000 }) : sendJson(response, 409, {}),
    );
    expect(await client.renew(LEASE)).toMatchObject({ outcome: 'renewed', leaseUntil: 9_000 });
    expect(await client.renew(LEASE)).toEqual({ outcome: 'lost' });
  });

  it('is not given up when a renewal is answered 401', async () => {
    const { client } = await run((response) => sendJson(response, 401, {}));
    expect(await client.renew(LEASE)).toMatchObject({ outcome: 'failed', error: { status: 401 } });
  });
});

describe('control signals', () => {
  it('are read', async () => {
    const { client } = await run((response, seen) =>
      sendJson(response, 200, seen.path.endsWith('cancel') ? { cancelRequested: true } : { funded: false }),
    );
    expect(await client.cancel()).toEqual({ outcome: 'answered', cancelRequested: true });
    expect(await client.credit()).toEqual({ outcome: 'answered', funded: false });
  });

  it('fail without an effect when they can not be read', async () => {
    const { client } = await run((response, seen) =>
      seen.path.endsWith('cancel') ? sendJson(response, 200, {}) : sendJson(response, 503, {}),
    );
    expect(await client.cancel()).toMatchObject({ outcome: 'failed' });
    expect(await client.credit()).toMatchObject({ outcome: 'failed' });
  });
});

describe('deliveries', () => {
  it('send rows and the end as they are', async () => {
    const { client, server } = await run((response) => response.writeHead(204).end());
    expect(await client.telemetry(['{"cursor":1}'])).toEqual({ outcome: 'accepted' });
    expect(await client.finalize('{"status":"completed"}')).toEqual({ outcome: 'accepted' });
    expect(await client.finalize({ status: 'failed' })).toEqual({ outcome: 'accepted' });
    expect(server.seen.map((seen) => JSON.parse(seen.body) as unknown)).toEqual([
      { frames: ['{"cursor":1}'] },
      { status: 'completed' },
      { status: 'failed' },
    ]);
  });

  it.each([400, 401, 403, 404, 409, 413])('are refused by a %i', async (status) => {
    const { client } = await run((response) =>
      sendJson(response, status, { error: { message: 'no rt_secret' } }),
    );
    const outcome = await client.telemetry([]);
    expect(outcome).toMatchObject({ outcome: 'refused', status });
    expect((outcome as { body: string }).body).toContain('no [REDACTED]');
  });

  it.each([
    [200, 'text/html', '<html>please log in</html>'],
    [401, 'text/html', '<html>please log in</html>'],
    [404, 'text/plain', 'default backend'],
    [409, 'application/json', '{}'],
  ])(
    'fail on a %i that something in between has said, whose word is not the platform’s',
    async (status, type, body) => {
      const { client } = await run((response) => {
        response.writeHead(status, { 'content-type': type }).end(body);
      });
      expect(await client.telemetry([])).toMatchObject({ outcome: 'failed' });
      expect(await client.finalize('{}')).toMatchObject({ outcome: 'failed' });
    },
  );

  it.each([301, 408, 425, 429, 500, 502, 503])('fail, once, on a %i', async (status) => {
    const { client, server } = await run((response) => sendJson(response, status, {}));
    expect(await client.finalize('{}')).toMatchObject({ outcome: 'failed', error: { status } });
    expect(server.seen).toHaveLength(1);
  });
});

describe('a call of a sandbox', () => {
  it('goes out with the run token in place of its bearer, and without the headers of its connection', async () => {
    const { client, server } = await run((response) =>
      sendJson(response, 418, { any: 1 }, { 'x-own': 'kept' }),
    );
    const outcome = await client.forward({
      method: 'POST',
      suffix: 'inputs/1%2F2',
      query: 'a=b',
      body: '{}',
      headers: {
        authorization: 'Bearer sandbox',
        host: 'gateway',
        'content-type': 'application/json',
        te: 'x',
      },
    });
    expect(outcome).toMatchObject({ outcome: 'answered', status: 418, headers: { 'x-own': 'kept' } });
    expect(server.seen[0]).toMatchObject({
      path: '/runner/v1/runs/run%201/inputs/1%2F2?a=b',
      headers: { authorization: 'Bearer rt_secret', 'content-type': 'application/json' },
    });
    expect(server.seen[0]?.headers.host).not.toBe('gateway');
    expect(server.seen[0]?.headers['te']).toBeUndefined();
  });

  it('is tried again while that is safe', async () => {
    const { client } = await run((response, _seen, nth) =>
      sendJson(response, nth === 1 ? 503 : 200, { nth }),
    );
    expect(await client.forward({ method: 'GET', suffix: 'version' })).toMatchObject({ status: 200 });
  });

  it('ends with the last answer at its deadline', async () => {
    const { client } = await run((response) => sendJson(response, 503, {}));
    const outcome = await client.forward({ method: 'GET', suffix: 'version', deadlineMs: 200 });
    expect(outcome).toMatchObject({ outcome: 'answered', status: 503 });
  });

  it.each(['../run_2/secrets/resolve', '%2e%2e/run_2/secrets/resolve', '..\\x', 'a?b'])(
    'does not leave its run by %s (R13)',
    async (suffix) => {
      const { client, server } = await run((response) => sendJson(response, 200, {}));
      const call = { method: 'GET', suffix } as const;
      expect(await client.forward(call)).toMatchObject({
        outcome: 'failed',
        error: { code: 'PLATFORM_INVALID' },
      });
      expect(await client.forwardStream(call)).toMatchObject({ outcome: 'failed' });
      expect(server.seen).toHaveLength(0);
    },
  );

  it('streams an answer of any status, once', async () => {
    const { client, server } = await run((response) => sendJson(response, 503, { error: {} }));
    const outcome = await client.forwardStream({ method: 'POST', suffix: 'inference', body: '{}' });
    if (outcome.outcome !== 'answered') throw outcome.error;
    expect(outcome.status).toBe(503);
    expect(Buffer.concat(await outcome.body.toArray()).toString()).toBe('{"error":{}}');
    expect(server.seen).toHaveLength(1);
  });
});

it('is not made for a run whose id fits no path', () => {
  const http = new PlatformHttp({ userAgent: 'test' });
  cleanUps.push(() => http.close());
  expect(() => new RunClient(http, { baseUrl: 'http://cp', runId: '..', runToken: 't' })).toThrow(/run id/);
});
