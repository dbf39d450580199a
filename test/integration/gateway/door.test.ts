import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redact, REDACTED } from '../../../src/redaction/redact.js';
import { ask, bare, open, textOf } from '../../unit/gateway/overSocket.js';
import { cut, json, type Respond, RUN_TOKEN, Worlds } from './doorWorld.js';

const worlds = new Worlds();
beforeAll(() => worlds.start());
afterAll(() => worlds.stop());

describe('calls that the executor answers itself', () => {
  test('claim and renew come from the lease that the executor holds; the platform is not asked', async () => {
    const world = await worlds.open({ lastEventCursor: 3_000_004 });
    const claim = await world.call('POST', 'claim', { workerId: 'x', leaseSeconds: 300 });
    expect(claim.status).toBe(201);
    expect(claim.json()).toMatchObject({ run: { id: world.runId, attempt: 2 }, lastEventCursor: 3_000_004 });
    expect((await world.call('POST', 'claim', { workerId: 'x', leaseSeconds: 300 })).status).toBe(201);
    const renew = await world.call('POST', 'renew', { workerId: 'x', leaseSeconds: 300 });
    expect([renew.status, renew.json()]).toEqual([200, { leaseUntil: 1_893_456_000_000 }]);
    expect(world.upstream.seen).toEqual([]);
  });

  test('cancel and credit tell the stop that was wanted first', async () => {
    const world = await worlds.open();
    expect((await world.call('GET', 'cancel')).json()).toEqual({ cancelRequested: false });
    expect((await world.call('GET', 'credit')).json()).toEqual({ funded: true });
    world.door.stop('credit_exhausted');
    world.door.stop('cancelled');
    expect((await world.call('GET', 'cancel')).json()).toEqual({ cancelRequested: false });
    expect((await world.call('GET', 'credit')).json()).toEqual({ funded: false });
    expect(world.upstream.seen).toEqual([]);
  });
});

describe('calls that are passed on', () => {
  test('go with the real token, their own body and nothing else of the sandbox', async () => {
    const world = await worlds.open();
    world.upstream.on(
      'children',
      json(201, { childRunId: 'run_c' }, { 'set-cookie': 'a=b', 'retry-after': '3' }),
    );
    const answer = await world.call(
      'POST',
      'children',
      { slug: 'x', input: 'ü', ordinal: 0 },
      {
        headers: { cookie: 'c=d', 'x-own': 'e' },
      },
    );
    expect([answer.status, answer.json()]).toEqual([201, { childRunId: 'run_c' }]);
    expect(answer.headers).toMatchObject({ 'retry-after': '3' });
    expect(answer.headers['set-cookie']).toBeUndefined();
    const [seen] = world.upstream.seen;
    expect(seen).toMatchObject({ method: 'POST', path: world.path('children') });
    expect(seen?.headers.authorization).toBe(`Bearer ${RUN_TOKEN}`);
    expect(JSON.parse(seen?.body ?? '')).toEqual({ slug: 'x', input: 'ü', ordinal: 0 });
    expect(seen?.headers).not.toHaveProperty('cookie');
    expect(seen?.headers).not.toHaveProperty('x-own');
  });

  test('are tried again after 503 and a cut connection, and the sandbox sees only the success', async () => {
    const world = await worlds.open();
    world.upstream.on('usage', json(503, {}), json(204, null));
    world.upstream.on('inputs', cut, json(200, { registered: true }));
    expect((await world.call('POST', 'usage', { runtimeSeconds: 1, identifier: 'a' })).status).toBe(204);
    expect((await world.call('POST', 'inputs', { seq: 1 })).status).toBe(200);
    expect(world.upstream.calls('usage')).toHaveLength(2);
    expect(world.upstream.calls('inputs')).toHaveLength(2);
  });

  test('errors of the platform are passed on with their bodies, and never tried again', async () => {
    const world = await worlds.open();
    const body = { error: { code: 'FORBIDDEN', message: 'not granted' } };
    world.upstream.on('tools/web_search', json(429, body));
    world.upstream.on('mcp/token', json(403, body));
    for (const [suffix, status] of [
      ['tools/web_search', 429],
      ['mcp/token', 403],
    ] as const) {
      const answer = await world.call('POST', suffix, {});
      expect([answer.status, answer.json()]).toEqual([status, body]);
      expect(world.upstream.calls(suffix)).toHaveLength(1);
    }
  });

  test('without an answer in time end with an error that a client may try again', async () => {
    const world = await worlds.open({ door: { limits: { callMs: 300 } } });
    world.upstream.on('schedules', () => undefined);
    world.upstream.on('usage', cut);
    world.upstream.on('liveview/wanted', json(503, { error: { code: 'LATER', message: 'later' } }));
    const slow = await world.call('POST', 'schedules', {});
    expect([slow.status, slow.json()]).toMatchObject([504, { error: { code: 'CONTROL_PLANE_TIMEOUT' } }]);
    const gone = await world.call('POST', 'usage', {});
    expect([gone.status, gone.json()]).toMatchObject([502, { error: { code: 'CONTROL_PLANE_UNREACHABLE' } }]);
    const later = await world.call('GET', 'liveview/wanted');
    expect([later.status, later.json()]).toMatchObject([503, { error: { code: 'LATER' } }]);
  });

  test('another run, another bearer and an unknown path never reach the platform', async () => {
    const world = await worlds.open();
    const { socketPath, bearer } = world.open;
    expect((await ask(socketPath, { path: '/runner/v1/runs/other/cancel', bearer })).status).toBe(403);
    expect((await ask(socketPath, { path: world.path('cancel'), bearer: 'guess' })).status).toBe(401);
    const unknown = await world.call('POST', 'nothing/here', {});
    expect([unknown.status, unknown.json()]).toMatchObject([404, { error: { code: 'NOT_FOUND' } }]);
    expect(world.upstream.seen).toEqual([]);
  });

  test('a body over the bound is a 413, declared or not, and the connection serves the next call', async () => {
    const world = await worlds.open({ door: { limits: { bodyBytes: 1_000 } } });
    world.upstream.on('usage', json(204, null));
    const declared = await world.call('POST', 'usage', { x: 'y'.repeat(200_000) });
    expect([declared.status, declared.json()]).toMatchObject([413, { error: { code: 'BODY_TOO_LARGE' } }]);
    const chunked = await world.call(
      'POST',
      'usage',
      { x: 'y'.repeat(2_000) },
      { headers: { 'transfer-encoding': 'chunked' } },
    );
    expect(chunked.status).toBe(413);
    expect((await world.call('POST', 'usage', {})).status).toBe(204);
    expect(world.upstream.calls('usage')).toHaveLength(1);
  });

  test('all bodies in hand together are bounded, and given back when their calls end', async () => {
    const world = await worlds.open({ door: { limits: { bodiesBytes: 1_500 } } });
    const held = new Promise<ServerResponse>((resolve) => {
      world.upstream.on('schedules', (_seen, res) => resolve(res));
    });
    const first = world.call('POST', 'schedules', { x: 'y'.repeat(1_000) });
    const res = await held;
    const refused = await world.call('POST', 'usage', { x: 'y'.repeat(1_000) });
    expect([refused.status, refused.json()]).toMatchObject([429, { error: { code: 'TOO_MUCH_IN_FLIGHT' } }]);
    res.writeHead(201).end('{}');
    expect((await first).status).toBe(201);
    expect((await world.call('POST', 'renew', { x: 'y'.repeat(1_000) })).status).toBe(200);
  });

  test('are ended upstream when the sandbox hangs up', async () => {
    const world = await worlds.open();
    const upstreamClosed = new Promise<void>((resolve) => {
      world.upstream.on('schedules', (_seen, res) => {
        res.on('close', () => resolve());
        socket.destroy();
      });
    });
    const { socket } = await bare(world.open.socketPath);
    socket.write(
      `POST ${world.path('schedules')} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${world.open.bearer}\r\ncontent-length: 2\r\n\r\n{}`,
    );
    await upstreamClosed;
  });
});

describe('secrets', () => {
  test('are known to redaction before the sandbox has them', async () => {
    const world = await worlds.open();
    world.upstream.on('secrets/resolve', json(200, { value: 'hunter2-value' }));
    world.upstream.on('oidc/token', json(200, { token: 'oidc-token-value', expiresIn: 900 }));
    world.upstream.on('mcp/token', json(200, { accessToken: 'mcp-token-value', expiresAt: null }));
    expect((await world.call('POST', 'secrets/resolve', { name: 'A' })).json()).toEqual({
      value: 'hunter2-value',
    });
    expect((await world.call('POST', 'oidc/token', { audience: 'a' })).status).toBe(200);
    expect((await world.call('POST', 'mcp/token', { serverUrl: 'a' })).status).toBe(200);
    for (const value of ['hunter2-value', 'oidc-token-value', 'mcp-token-value']) {
      expect(redact(value, world.secrets)).toBe(REDACTED);
    }
  });

  test('an answer that names no value is not passed on, because it could not be redacted', async () => {
    const world = await worlds.open();
    world.upstream.on('secrets/resolve', json(200, { secret: 'hunter2-value' }));
    const answer = await world.call('POST', 'secrets/resolve', { name: 'A' });
    expect(answer.status).toBe(502);
    expect(answer.text).not.toContain('hunter2');
  });

  test('a secret that does not exist, or is not granted, keeps its status', async () => {
    const world = await worlds.open();
    world.upstream.on(
      'secrets/resolve',
      json(404, { error: { code: 'NOT_FOUND', message: 'x' } }),
      json(403, {}),
    );
    expect((await world.call('POST', 'secrets/resolve', { name: 'A' })).status).toBe(404);
    expect((await world.call('POST', 'secrets/resolve', { name: 'A' })).status).toBe(403);
  });
});

describe('version and program', () => {
  const archive = Buffer.alloc(3_000_000, 'archive ');
  const brokenBeforeItsFirstByte: Respond = (_seen, res) => {
    res.writeHead(200, { 'content-length': String(archive.byteLength) });
    res.flushHeaders();
    setTimeout(() => res.destroy(), 20);
  };

  test('the program comes through the gateway, from an address that the sandbox never sees', async () => {
    const world = await worlds.open();
    const downloadUrl = `${world.upstream.url}/objects/archive?signature=abc`;
    const version = {
      manifest: { slug: 'x' },
      program: { entry: 'index.mjs', digest: 'd', sdkVersion: '*', downloadUrl },
      more: 1,
    };
    world.upstream.on('version', json(200, version));
    world.upstream.on('/objects/archive', json(503, {}), cut, brokenBeforeItsFirstByte, (_seen, res) =>
      res.writeHead(200, { 'content-length': String(archive.byteLength) }).end(archive),
    );
    expect((await world.call('GET', '_fleet/program')).status).toBe(409);
    const answer = (await world.call('GET', 'version')).json();
    const path = world.path('_fleet/program');
    expect(answer).toEqual({ ...version, program: { ...version.program, downloadUrl: path } });
    const { res } = await open(world.open.socketPath, { path, bearer: world.open.bearer });
    expect(res.statusCode).toBe(200);
    expect(res.headers['content-length']).toBe(String(archive.byteLength));
    expect(await textOf(res)).toBe(archive.toString());
    const asked = world.upstream.calls('/objects/archive');
    expect(asked).toHaveLength(4);
    expect(asked.every((seen) => seen.headers.authorization === undefined)).toBe(true);
  });

  test('a download that breaks after its first byte is cut, not completed', async () => {
    const world = await worlds.open();
    const downloadUrl = `${world.upstream.url}/objects/archive`;
    world.upstream.on('version', json(200, { manifest: {}, program: { downloadUrl } }));
    world.upstream.on('/objects/archive', (_seen, res) => {
      res.writeHead(200, { 'content-length': String(archive.byteLength) });
      res.write(archive.subarray(0, 1_000));
      setTimeout(() => res.destroy(), 20);
    });
    await world.call('GET', 'version');
    await expect(world.call('GET', '_fleet/program')).rejects.toThrow(/aborted|hang up/);
  });

  test('a missing version and a missing program keep their status', async () => {
    const world = await worlds.open();
    expect((await world.call('GET', 'version')).status).toBe(404);
    world.upstream.on(
      'version',
      json(200, { manifest: {}, program: { downloadUrl: `${world.upstream.url}/gone` } }),
    );
    await world.call('GET', 'version');
    expect((await world.call('GET', '_fleet/program')).status).toBe(404);
  });

  test('a version without a usable address is the platform’s fault', async () => {
    const world = await worlds.open();
    for (const program of [undefined, {}, { downloadUrl: 7 }, { downloadUrl: 'file:///etc/passwd' }]) {
      world.upstream.on('version', json(200, { manifest: {}, program }));
      expect((await world.call('GET', 'version')).status).toBe(502);
    }
  });
});

describe('the fence', () => {
  test('once it has fallen every call is answered 410 and nothing goes upstream', async () => {
    const world = await worlds.open();
    world.upstream.on('usage', json(204, null));
    world.fence.fall('superseded');
    for (const [method, suffix] of [
      ['POST', 'usage'],
      ['POST', 'claim'],
      ['GET', 'cancel'],
      ['POST', 'telemetry'],
      ['POST', 'inference'],
    ] as const) {
      const answer = await world.call(method, suffix, method === 'POST' ? {} : undefined);
      expect([answer.status, answer.json()]).toMatchObject([410, { error: { code: 'FENCED' } }]);
    }
    expect(world.upstream.seen).toEqual([]);
  });

  test('falls on a call in progress: upstream is cut and the sandbox is told (P12)', async () => {
    const world = await worlds.open();
    const upstreamClosed = new Promise<void>((resolve) => {
      world.upstream.on('schedules', (_seen, res) => {
        res.on('close', () => resolve());
        world.fence.fall('lock_lost');
      });
    });
    const answer = await world.call('POST', 'schedules', {});
    expect([answer.status, answer.json()]).toMatchObject([410, { error: { code: 'FENCED' } }]);
    await upstreamClosed;
  });

  test('is asked before an answer is written, because a frozen process has no timers (P12)', async () => {
    const clock = { mayAct: true };
    const world = await worlds.open({
      door: { fence: { signal: new AbortController().signal, check: () => clock.mayAct } },
    });
    world.upstream.on('secrets/resolve', (seen, res, req) => {
      clock.mayAct = false;
      json(200, { value: 'hunter2-value' })(seen, res, req);
    });
    const answer = await world.call('POST', 'secrets/resolve', { name: 'A' });
    expect(answer.status).toBe(410);
    expect(answer.text).not.toContain('hunter2');
  });
});

describe('closing', () => {
  test('ends what is in progress on both sides and answers nothing any more', async () => {
    const world = await worlds.open();
    const upstreamClosed = new Promise<void>((resolve) => {
      world.upstream.on('schedules', (_seen, res) => {
        res.on('close', () => resolve());
        world.door.close();
      });
    });
    await expect(world.call('POST', 'schedules', {})).rejects.toThrow();
    await upstreamClosed;
    await expect(world.call('GET', 'cancel')).rejects.toThrow();
    world.door.close();
  });
});

describe('the watch', () => {
  interface Line {
    readonly t: string;
    readonly ttl_ms?: number;
    readonly reason?: string;
  }

  async function* linesOf(world: Awaited<ReturnType<Worlds['open']>>): AsyncGenerator<Line, void, undefined> {
    const { res } = await open(world.open.socketPath, {
      path: world.path('_fleet/watch'),
      bearer: world.open.bearer,
    });
    expect(res.statusCode).toBe(200);
    res.setEncoding('utf8');
    let text = '';
    try {
      for await (const chunk of res) {
        text += String(chunk);
        for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n')) {
          yield JSON.parse(text.slice(0, at)) as Line;
          text = text.slice(at + 1);
        }
      }
    } catch {
      // A cut connection ends the watch like any other end.
    }
  }

  test('says at once, and again and again, how long the sandbox may go on', async () => {
    const world = await worlds.open();
    const lines = linesOf(world);
    const first = (await lines.next()).value;
    const second = (await lines.next()).value;
    expect(first).toMatchObject({ t: 'alive' });
    expect(second).toMatchObject({ t: 'alive' });
    expect(second?.ttl_ms).toBeLessThan(first?.ttl_ms ?? 0);
    await world.open.close();
    expect((await lines.next()).done).toBe(true);
  });

  test('tells a stop at once, and again to whoever comes later', async () => {
    const world = await worlds.open();
    const lines = linesOf(world);
    await lines.next();
    world.door.stop('cancelled');
    expect((await lines.next()).value).toEqual({ t: 'stop', reason: 'cancelled' });
    const late = linesOf(world);
    await late.next();
    expect((await late.next()).value).toEqual({ t: 'stop', reason: 'cancelled' });
    expect((await world.call('GET', 'cancel')).json()).toEqual({ cancelRequested: true });
  });

  test('ends when the fence falls', async () => {
    const world = await worlds.open();
    const lines = linesOf(world);
    await lines.next();
    world.fence.fall('lock_expiring');
    expect((await lines.next()).done).toBe(true);
  });

  test('is given only a few times at once', async () => {
    const world = await worlds.open();
    const opened = await Promise.all(
      Array.from({ length: 9 }, () =>
        open(world.open.socketPath, { path: world.path('_fleet/watch'), bearer: world.open.bearer }),
      ),
    );
    expect(opened.map(({ res }) => res.statusCode).sort()).toEqual([...Array<number>(8).fill(200), 429]);
    for (const { req, res } of opened) {
      res.on('error', () => undefined);
      req.destroy();
    }
  });
});
