import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type HttpCall, PlatformHttp } from '../../../src/platform/http.js';
import { PlatformError } from '../../../src/platform/platformError.js';
import { type Handler, sendJson, startTestServer, type TestServer } from './testServer.js';

const cleanUps: (() => Promise<void>)[] = [];

afterEach(async () => {
  vi.useRealTimers();
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function serve(handler: Handler): Promise<TestServer> {
  const server = await startTestServer(handler);
  cleanUps.push(() => server.close());
  return server;
}

function client(): PlatformHttp {
  // Random 0 gives the shortest jittered delay: 375 ms before the first retry.
  const http = new PlatformHttp({ userAgent: 'boardwalk-fleet/test', random: () => 0 });
  cleanUps.push(() => http.close());
  return http;
}

function call(url: string, more: Partial<HttpCall> = {}): HttpCall {
  return { name: 'test call', method: 'GET', url, retry: 'none', ...more };
}

async function errorOf(promise: Promise<unknown>): Promise<PlatformError> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof PlatformError)) throw new Error(`expected a PlatformError, got ${String(error)}`);
  return error;
}

describe('one call', () => {
  it('sends bearer, headers and body and reads the answer whole', async () => {
    const server = await serve((response) => sendJson(response, 201, { ok: true }));
    const answer = await client().request(
      call(`${server.url}/a/b?c=d`, {
        method: 'POST',
        body: '{"x":1}',
        bearer: 'tok',
        headers: { accept: 'a/b' },
      }),
    );
    expect(answer.status).toBe(201);
    expect(answer.json()).toEqual({ ok: true });
    expect(server.seen[0]).toMatchObject({
      method: 'POST',
      path: '/a/b?c=d',
      body: '{"x":1}',
      headers: { authorization: 'Bearer tok', accept: 'a/b', 'user-agent': 'boardwalk-fleet/test' },
    });
  });

  it('returns an answer of any status and keeps the connection for later calls', async () => {
    const server = await serve((response, _seen, nth) =>
      sendJson(response, nth % 2 === 1 ? 500 : 200, { nth }),
    );
    const http = client();
    const statuses: number[] = [];
    for (let n = 0; n < 6; n++) statuses.push((await http.request(call(server.url))).status);
    expect(statuses).toEqual([500, 200, 500, 200, 500, 200]);
    // A call that follows at once may find the connection still busy with the end of the last answer.
    expect(server.openSockets()).toBeLessThanOrEqual(2);
  });

  it('says where it got no connection, and never the path of the URL', async () => {
    const server = await startTestServer((response) => response.end());
    await server.close();
    const error = await errorOf(client().request(call(`${server.url}/presigned?signature=hidden`)));
    expect(error.code).toBe('PLATFORM_UNREACHABLE');
    expect(error.message).toContain(server.url);
    expect(error.message).toContain('ECONNREFUSED');
    expect(error.message).not.toContain('presigned');
  });

  it('reports an answer that is cut in the middle of its body', async () => {
    const server = await serve((response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('half of it', () => response.destroy());
    });
    expect((await errorOf(client().request(call(server.url)))).code).toBe('PLATFORM_UNREACHABLE');
  });

  it('reports bytes that are not HTTP', async () => {
    const garbage = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.resume();
      socket.end('!!! certainly not http\r\n\r\n');
    });
    await new Promise<void>((resolve) => garbage.listen(0, '127.0.0.1', resolve));
    cleanUps.push(() => new Promise((resolve) => garbage.close(() => resolve())));
    const { port } = garbage.address() as AddressInfo;
    expect((await errorOf(client().request(call(`http://127.0.0.1:${port}`)))).code).toBe(
      'PLATFORM_UNREACHABLE',
    );
  });

  it('gives up an answer that never begins, and one that begins and never ends', async () => {
    const server = await serve((response, seen) => {
      if (seen.path === '/silent') return;
      response.writeHead(200);
      response.write('and then nothing');
    });
    const http = client();
    for (const path of ['/silent', '/stuck']) {
      const error = await errorOf(http.request(call(server.url + path, { timeoutMs: 50 })));
      expect(error.code).toBe('PLATFORM_TIMEOUT');
    }
  });

  it('refuses an answer over the bound and drops its connection', async () => {
    const server = await serve((response) => void response.write('x'.repeat(5_000)));
    const error = await errorOf(client().request(call(server.url, { maxBytes: 1_000 })));
    expect(error.code).toBe('PLATFORM_INVALID');
    await vi.waitFor(() => expect(server.openSockets()).toBe(0));
  });

  it('cuts an error body over the bound instead of losing the status', async () => {
    const server = await serve((response) => {
      response.writeHead(500);
      response.end('x'.repeat(5_000));
    });
    const answer = await client().request(call(server.url, { maxBytes: 1_000 }));
    expect(answer.status).toBe(500);
    expect(answer.text()).toHaveLength(1_000);
  });

  it.each(['not a url', 'ftp://127.0.0.1/x'])(
    'does not try an address that it can not call: %s',
    async (url) => {
      const error = await errorOf(client().request(call(url, { retry: 'transient' })));
      expect(error.code).toBe('PLATFORM_INVALID');
    },
  );
});

describe('errors made from answers', () => {
  it('carry status, the code and message of the body, Retry-After and the endpoint', async () => {
    const server = await serve((response) =>
      sendJson(
        response,
        429,
        { error: { code: 'SLOW_DOWN', message: 'too many polls' } },
        { 'retry-after': '7' },
      ),
    );
    const error = (await client().request(call(server.url))).unexpected();
    expect(error).toMatchObject({
      code: 'PLATFORM_STATUS',
      endpoint: 'test call',
      status: 429,
      serverCode: 'SLOW_DOWN',
      serverMessage: 'too many polls',
      retryAfterMs: 7_000,
    });
    expect(error.message).toBe('test call: the control plane answered 429: too many polls (SLOW_DOWN)');
  });

  it('keep the first 500 characters of a body of another shape', async () => {
    const server = await serve((response) => {
      response.writeHead(418);
      response.end('t'.repeat(900));
    });
    expect((await client().request(call(server.url))).unexpected().bodyStart).toHaveLength(500);
  });

  it('never contain a token of the call, although the server echoes it across the cut', async () => {
    const bearer = 'bwkr_very-secret-token';
    const server = await serve((response) =>
      sendJson(response, 400, { error: { message: `${'.'.repeat(490)}${bearer} and other-secret` } }),
    );
    const answer = await client().request(call(server.url, { bearer, secrets: ['other-secret'] }));
    const error = answer.unexpected();
    const everything = JSON.stringify([error, error.message, error.stack]);
    expect(everything).not.toContain('bwkr_');
    expect(everything).not.toContain('other-secret');
  });

  it('never quote an answer that may be full of fresh tokens', async () => {
    const server = await serve((response, seen) => {
      if (seen.path === '/json') sendJson(response, 202, { run_token: 'rt_fresh' });
      else response.end('rt_fresh, not json');
    });
    const http = client();
    const unexpected = (await http.request(call(`${server.url}/json`))).unexpected();
    const answer = await http.request(call(`${server.url}/text`));
    const unreadable = await errorOf(Promise.resolve().then(() => answer.json()));
    for (const error of [unexpected, unreadable]) {
      const everything = JSON.stringify([error, error.message, String(error.cause)]);
      expect(everything).not.toContain('rt_fresh');
    }
  });

  it('understands Retry-After as a date by the clock of the server', async () => {
    const now = Date.UTC(2030, 0, 1);
    const server = await serve((response) => {
      response.setHeader('date', new Date(now).toUTCString());
      response.setHeader('retry-after', new Date(now + 90_000).toUTCString());
      response.end();
    });
    const answer = await client().request(call(server.url));
    expect(answer.retryAfterMs).toBe(90_000);
    expect(answer.dateMs).toBe(now);
  });
});

describe('retry', () => {
  it('tries a 503 again and returns the success', async () => {
    const server = await serve((response, _seen, nth) => sendJson(response, nth === 1 ? 503 : 200, { nth }));
    const answer = await client().request(call(server.url, { retry: 'transient' }));
    expect(answer.json()).toEqual({ nth: 2 });
  });

  it('tries a connection that was cut again', async () => {
    const server = await serve((response, _seen, nth) => {
      if (nth === 1) response.destroy();
      else response.end('here');
    });
    expect((await client().request(call(server.url, { retry: 'transient' }))).text()).toBe('here');
  });

  it('tries a silent attempt again', async () => {
    const server = await serve((response, _seen, nth) => {
      if (nth > 1) response.end('here');
    });
    const answer = await client().request(call(server.url, { retry: 'transient', timeoutMs: 60 }));
    expect(answer.text()).toBe('here');
  });

  it.each([400, 401, 409, 429, 500])('does not repeat a %i', async (status) => {
    const server = await serve((response) => sendJson(response, status, {}));
    expect((await client().request(call(server.url, { retry: 'transient' }))).status).toBe(status);
    expect(server.seen).toHaveLength(1);
  });

  it('does not repeat anything without being asked to', async () => {
    const server = await serve((response) => sendJson(response, 503, {}));
    expect((await client().request(call(server.url))).status).toBe(503);
    expect(server.seen).toHaveLength(1);
  });

  it('hands on the last answer when the next wait would pass the deadline', async () => {
    const server = await serve((response) => sendJson(response, 503, {}));
    const answer = await client().request(call(server.url, { retry: 'transient', deadlineMs: 300 }));
    expect(answer.status).toBe(503);
    expect(server.seen).toHaveLength(1);
  });

  it('lets no attempt outlive the deadline', async () => {
    const server = await serve(() => undefined);
    const error = await errorOf(client().request(call(server.url, { retry: 'transient', deadlineMs: 60 })));
    expect(error.code).toBe('PLATFORM_TIMEOUT');
  });
});

describe('abort', () => {
  it('ends an attempt at once and closes its connection', async () => {
    const stop = new AbortController();
    const server = await serve(() => stop.abort());
    const error = await errorOf(client().request(call(server.url, { signal: stop.signal })));
    expect(error.code).toBe('PLATFORM_ABORTED');
    await vi.waitFor(() => expect(server.openSockets()).toBe(0));
  });

  it('ends the wait between two attempts', async () => {
    const stop = new AbortController();
    const server = await serve((response) => {
      response.on('close', () => setImmediate(() => stop.abort()));
      sendJson(response, 503, {});
    });
    const error = await errorOf(
      client().request(call(server.url, { retry: 'transient', signal: stop.signal })),
    );
    expect(error.code).toBe('PLATFORM_ABORTED');
    expect(server.seen).toHaveLength(1);
  });

  it('makes no call under a signal that has fallen', async () => {
    const server = await serve((response) => response.end());
    const error = await errorOf(client().request(call(server.url, { signal: AbortSignal.abort() })));
    expect(error.code).toBe('PLATFORM_ABORTED');
    expect(server.seen).toHaveLength(0);
  });

  it('cuts what is in flight when the client is closed, also when that happens twice', async () => {
    const http = client();
    const server = await serve(() => void http.close());
    expect((await errorOf(http.request(call(server.url)))).code).toBe('PLATFORM_UNREACHABLE');
    await http.close();
  });
});

describe('redirects', () => {
  it('are followed with the bearer within an origin', async () => {
    const server = await serve((response, seen) => {
      if (seen.path === '/there') response.end('arrived');
      else response.writeHead(307, { location: '/there' }).end();
    });
    const answer = await client().request(
      call(`${server.url}/here`, { method: 'POST', body: 'b', bearer: 'tok' }),
    );
    expect(answer.text()).toBe('arrived');
    expect(server.seen[1]).toMatchObject({
      method: 'POST',
      body: 'b',
      headers: { authorization: 'Bearer tok' },
    });
  });

  it('lose the bearer on the way to another origin', async () => {
    const other = await serve((response) => response.end('arrived'));
    const server = await serve((response) => response.writeHead(302, { location: `${other.url}/x` }).end());
    const answer = await client().request(call(server.url, { bearer: 'tok' }));
    expect(answer.text()).toBe('arrived');
    expect(other.seen[0]?.headers.authorization).toBeUndefined();
  });

  it.each([301, 302, 303, 307, 308])(
    'with status %i are not followed with a body to another origin, and the address is named',
    async (status) => {
      const other = await serve((response) => response.end('caught'));
      const server = await serve((response) =>
        response.writeHead(status, { location: `${other.url}/x?secret` }).end(),
      );
      const error = await errorOf(
        client().request(
          call(server.url, { method: 'POST', body: 'bwkreg_token', bearer: 'tok', retry: 'transient' }),
        ),
      );
      expect(other.seen).toEqual([]);
      expect(error.message).toContain(
        `the control plane at ${server.url} answers with a redirect to ${other.url}`,
      );
      expect(error.message).not.toContain('secret');
      expect(error.hint).toContain('Is --url right?');
    },
  );

  it('lose the bearer for good, also when they come back', async () => {
    const other = await serve((response) =>
      response.writeHead(302, { location: `${server.url}/back` }).end(),
    );
    const server: TestServer = await serve((response, seen) => {
      if (seen.path === '/back') response.end('arrived');
      else response.writeHead(302, { location: other.url }).end();
    });
    await client().request(call(`${server.url}/here`, { bearer: 'tok' }));
    expect(server.seen[1]?.headers.authorization).toBeUndefined();
  });

  it('turn a POST into a GET without a body on a 303', async () => {
    const server = await serve((response, seen) => {
      if (seen.path === '/there') response.end('arrived');
      else response.writeHead(303, { location: '/there' }).end();
    });
    await client().request(call(`${server.url}/here`, { method: 'POST', body: 'b' }));
    expect(server.seen[1]).toMatchObject({ method: 'GET', body: '' });
  });

  it('end when they go in a circle', async () => {
    const server = await serve((response) => response.writeHead(302, { location: '/again' }).end());
    expect((await errorOf(client().request(call(server.url)))).code).toMatch(/^PLATFORM_/);
  });
});

describe('a stream', () => {
  it('hands its bytes on as they come', async () => {
    const gate: { open?: () => void } = {};
    const server = await serve((response) => {
      response.write('first');
      gate.open = () => response.end('second');
    });
    const answer = await client().stream({ name: 's', method: 'GET', url: server.url, timeoutMs: 0 });
    const chunks: string[] = [];
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      chunks.push(chunk.toString());
      if (chunks.length === 1) gate.open?.();
    }
    expect(chunks).toEqual(['first', 'second']);
  });

  it('breaks when its signal falls, and the server learns of it', async () => {
    const stop = new AbortController();
    let tellClosed: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => (tellClosed = resolve));
    const server = await serve((response) => {
      response.write('first');
      response.on('close', () => tellClosed());
    });
    const answer = await client().stream({
      name: 's',
      method: 'GET',
      url: server.url,
      timeoutMs: 0,
      signal: stop.signal,
    });
    await expect(
      (async () => {
        for await (const chunk of answer.body) {
          expect(String(chunk)).toBe('first');
          stop.abort();
        }
      })(),
    ).rejects.toThrow();
    await closed;
  });

  it('breaks when the server cuts it', async () => {
    const server = await serve((response) => {
      response.write('first', () => setImmediate(() => response.destroy()));
    });
    const answer = await client().stream({ name: 's', method: 'GET', url: server.url, timeoutMs: 0 });
    await expect(answer.body.toArray()).rejects.toThrow();
  });

  it('breaks when it is silent for longer than allowed in all', async () => {
    const server = await serve((response) => void response.write('first'));
    const answer = await client().stream({ name: 's', method: 'GET', url: server.url, timeoutMs: 80 });
    await expect(answer.body.toArray()).rejects.toThrow();
  });

  it('may be destroyed unread without harm', async () => {
    const server = await serve((response) => void response.write('first'));
    const answer = await client().stream({ name: 's', method: 'GET', url: server.url, timeoutMs: 0 });
    answer.body.destroy();
    await vi.waitFor(() => expect(server.openSockets()).toBe(0));
  });

  it('reports what prevents its headers as a request does', async () => {
    const server = await serve(() => undefined);
    const error = await errorOf(
      client().stream({ name: 's', method: 'GET', url: server.url, timeoutMs: 40 }),
    );
    expect(error.code).toBe('PLATFORM_TIMEOUT');
  });
});
