// Calls through a real proxy in this process, to names that only the proxy knows.

import { afterEach, describe, expect, it } from 'vitest';
import { PlatformHttp } from '../../../src/platform/http.js';
import { startTestProxy, type TestProxy } from '../../support/proxy.js';
import { sendJson, startTestServer } from './testServer.js';

const cleanUps: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

function client(environment: Readonly<Record<string, string>>): PlatformHttp {
  const http = new PlatformHttp({ userAgent: 'test', environment });
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
  ])('with NO_PROXY=%s goes past it: %s', async (exception, past) => {
    const { proxy } = await world();
    const http = client({ HTTP_PROXY: `http://${proxy.address}`, NO_PROXY: exception });
    const ended = await get(http, 'http://control-plane.test:8080/').catch(() => 'no such name');
    expect(ended).toBe(past ? 'no such name' : 200);
    expect(proxy.seen).toHaveLength(past ? 0 : 1);
  });
});

describe('a proxy', () => {
  it.each([
    [407, 'http://control-plane.test/', 'The proxy wants credentials'],
    [407, 'https://control-plane.test/', 'The proxy wants credentials'],
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

  it('that is away is named: the control plane is not to blame', async () => {
    const http = client({ HTTP_PROXY: 'http://127.0.0.1:9' });
    await expect(get(http, 'http://control-plane.test/')).rejects.toMatchObject({
      code: 'PLATFORM_UNREACHABLE',
      message: expect.stringContaining('127.0.0.1:9 (HTTP_PROXY)') as string,
    });
  });

  it.each(['socks5://ada:crate@127.0.0.1:1080', 'http://', 'http://ada:crate@:99999'])(
    'at %s is refused at once, naming the variable and no password',
    (address) => {
      const make = (): PlatformHttp =>
        new PlatformHttp({ userAgent: 'test', environment: { HTTPS_PROXY: address } });
      expect(make).toThrow('HTTPS_PROXY');
      expect(make).not.toThrow('crate');
    },
  );
});
