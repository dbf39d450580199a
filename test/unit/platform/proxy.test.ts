// Calls through a real proxy in this process, to names that only the proxy knows.

import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { PlatformHttp, type PlatformHttpOptions } from '../../../src/platform/http.js';
import { ProxySettings } from '../../../src/platform/proxy.js';
import { startTestProxy, type TestProxy } from '../../support/proxy.js';
import { sendJson, startTestServer } from './testServer.js';

const cleanUps: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

function client(
  environment: Readonly<Record<string, string>>,
  timeouts?: PlatformHttpOptions['timeouts'],
): PlatformHttp {
  const http = new PlatformHttp({ userAgent: 'test', environment, timeouts });
  cleanUps.push(() => http.close());
  return http;
}

async function get(http: PlatformHttp, url: string): Promise<number> {
  return (await http.request({ name: 'poll', method: 'GET', url, retry: 'none' })).status;
}

async function world(refuse?: number): Promise<{ readonly proxy: TestProxy; readonly port: number }> {
  const server = await startTestServer((response) => sendJson(response, 200, {}));
  cleanUps.push(() => server.close());
  const port = Number(new URL(server.url).port);
  const proxy = await startTestProxy(port, refuse);
  cleanUps.push(() => proxy.stop());
  return { proxy, port };
}

/** One that behaves as `answer` does with what it is sent. */
async function rawProxy(
  answer: (socket: Socket, text: string) => void,
): Promise<{ readonly address: string; readonly dialled: () => number }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('data', (data) => answer(socket, data.toString()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUps.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    dialled: () => sockets.size,
  };
}

describe('a call to a name that HTTP_PROXY holds for', () => {
  it('is handed to the proxy whole, with the credentials of its address (P44)', async () => {
    const { proxy } = await world();
    const http = client({ HTTP_PROXY: `http://ada:s%40crate@${proxy.address}` });
    expect(await get(http, 'http://control-plane.test:8080/runner/v1/poll?a=b')).toBe(200);
    expect(proxy.seen).toEqual([
      {
        call: 'GET http://control-plane.test:8080/runner/v1/poll?a=b',
        authorization: `Basic ${Buffer.from('ada:s@crate').toString('base64')}`,
      },
    ]);
  });

  it('goes through a tunnel where the address is https', async () => {
    const { proxy } = await world();
    const http = client({ https_proxy: proxy.address });
    // The server behind it speaks no TLS: what matters is how the proxy was asked.
    await expect(get(http, 'https://control-plane.test/poll')).rejects.toThrow(
      `through the proxy ${proxy.address} (https_proxy)`,
    );
    expect(proxy.seen.map(({ call }) => call)).toEqual(['CONNECT control-plane.test:443']);
  });

  it.each([
    ['this machine', {}, '127.0.0.1'],
    ['this machine by its name', {}, 'localhost'],
    ['a name that is excepted', { NO_PROXY: 'other.test, localhost.test' }, '127.0.0.1'],
    ['an address that is excepted', { NO_PROXY: '::1,127.0.0.1' }, '127.0.0.1'],
    ['everything', { no_proxy: '*' }, '127.0.0.1'],
    ['an empty variable', { http_proxy: '', HTTP_PROXY: '' }, '127.0.0.1'],
  ])('goes past it for %s', async (_what, changes, host) => {
    const { proxy, port } = await world();
    const http = client({ HTTP_PROXY: `http://${proxy.address}`, ...changes });
    expect(await get(http, `http://${host}:${port}/`)).toBe(200);
    expect(proxy.seen).toEqual([]);
  });

  it.each([
    ['control-plane.test', true],
    ['.test', true],
    ['*.test', true],
    ['control-plane.test:8080', true],
    ['control-plane.test:9090', false],
    ['plane.test', false],
    ['2001:db8::1', false],
  ])('with NO_PROXY=%s goes past it: %s', async (exception, past) => {
    const { proxy } = await world();
    const http = client({ HTTP_PROXY: `http://${proxy.address}`, NO_PROXY: exception });
    const ended = await get(http, 'http://control-plane.test:8080/').catch(() => 'no such name');
    expect(ended).toBe(past ? 'no such name' : 200);
    expect(proxy.seen).toHaveLength(past ? 0 : 1);
  });
});

it('past which an IPv6 address is named in NO_PROXY, with brackets or without, is not asked', () => {
  const past = (exception: string, url: string): boolean =>
    new ProxySettings({ HTTP_PROXY: 'proxy.test:3128', NO_PROXY: exception }).proxyFor(new URL(url)) ===
    undefined;
  expect(past('2001:db8::1', 'http://[2001:db8::1]:8080/')).toBe(true);
  expect(past('[2001:db8::1]:8080', 'http://[2001:db8::1]:8080/')).toBe(true);
  expect(past('2001:db8::1', 'http://[2001:db8::2]/')).toBe(false);
});

describe('a proxy', () => {
  it.each([
    [407, 'http://control-plane.test/', 'The proxy wants credentials, and does not take those'],
    [407, 'https://control-plane.test/', 'The proxy wants credentials, and does not take those'],
    [403, 'https://control-plane.test/', 'Check the proxy'],
  ])('that answers %i for %s is named, without its credentials', async (status, url, hint) => {
    const { proxy } = await world(status);
    const address = `http://ada:crate@${proxy.address}`;
    const error = await get(client({ HTTP_PROXY: address, HTTPS_PROXY: address }), url).catch(
      (e: unknown) => e,
    );
    expect(error).toMatchObject({ hint: expect.stringContaining(hint) as string });
    expect(String(error)).toContain(`through the proxy ${proxy.address} (HTTP`);
    expect(JSON.stringify(error) + String(error)).not.toContain('crate');
  });

  it.each(['http', 'https'])(
    'that wants credentials for %s is told from one that refuses ours',
    async (scheme) => {
      const { proxy } = await world(407);
      const http = client({ HTTP_PROXY: proxy.address, HTTPS_PROXY: proxy.address });
      await expect(get(http, `${scheme}://control-plane.test/`)).rejects.toMatchObject({
        code: 'PLATFORM_UNREACHABLE',
        hint: expect.stringContaining('give them as') as string,
      });
    },
  );

  it('that hangs up on a tunnel is dialled once for an attempt', async () => {
    const proxy = await rawProxy((socket) => socket.end());
    await expect(
      get(client({ HTTPS_PROXY: proxy.address }), 'https://control-plane.test/'),
    ).rejects.toMatchObject({
      code: 'PLATFORM_UNREACHABLE',
      message: expect.stringContaining(`${proxy.address} (HTTPS_PROXY)`) as string,
    });
    expect(proxy.dialled()).toBe(1);
  });

  it('that never opens a tunnel has the time of a connect, also for a call without an end', async () => {
    const proxy = await rawProxy(() => undefined);
    const http = client({ HTTPS_PROXY: proxy.address }, { connectMs: 200 });
    const call = {
      name: 'inference',
      method: 'POST',
      url: 'https://control-plane.test/',
      timeoutMs: 0,
    } as const;
    await expect(http.stream(call)).rejects.toMatchObject({
      code: 'PLATFORM_TIMEOUT',
      message: expect.stringContaining(`${proxy.address} (HTTPS_PROXY)`) as string,
      hint: expect.stringContaining('Check the proxy') as string,
    });
  });

  it('that repeats in a refusal what it was sent gives no password away', async () => {
    const proxy = await rawProxy((socket, text) => {
      socket.end(`HTTP/1.1 403 No\r\ncontent-length: ${text.length}\r\n\r\n${text}`);
    });
    const http = client({ HTTP_PROXY: `http://ada:crate@${proxy.address}` });
    const answer = await http.request({
      name: 'poll',
      method: 'GET',
      url: 'http://control-plane.test/',
      retry: 'none',
    });
    const error = answer.unexpected();
    expect(error.bodyStart).toContain('proxy-authorization: Basic [REDACTED]');
  });

  it('that is away is named: the control plane is not to blame', async () => {
    const http = client({ HTTP_PROXY: 'http://127.0.0.1:9' });
    await expect(get(http, 'http://control-plane.test/')).rejects.toMatchObject({
      code: 'PLATFORM_UNREACHABLE',
      message: expect.stringContaining('127.0.0.1:9 (HTTP_PROXY)') as string,
    });
  });

  it.each([
    'socks5://ada:crate@127.0.0.1:1080',
    'http://',
    'http://ada:crate@:99999',
    'http://ada:crate%@proxy.test',
  ])('at %s is refused at once, naming the variable and no password', (address) => {
    const make = (): PlatformHttp =>
      new PlatformHttp({ userAgent: 'test', environment: { HTTPS_PROXY: address } });
    expect(make).toThrow('HTTPS_PROXY');
    expect(make).not.toThrow('crate');
  });
});
