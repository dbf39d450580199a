// The program behind a proxy: its own clients go through it, whether or not Node.js is told to by its own switch (P44).

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HELLO, runProgram } from '../../support/localFleet.js';
import { startTestProxy, type TestProxy } from '../../support/proxy.js';

let dir: string;
let key: string;
let cert: string;
let server: Server;
let proxy: TestProxy;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'bwf-proxy-'));
  cert = join(dir, 'cert.pem');
  key = join(dir, 'key.pem');
  const wanted =
    '-x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=control-plane.test';
  const names = ['-addext', 'subjectAltName=DNS:control-plane.test,DNS:localhost'];
  await promisify(execFile)('openssl', ['req', ...wanted.split(' '), ...names, '-keyout', key, '-out', cert]);
  server = createServer({ key: await readFile(key), cert: await readFile(cert) }, (_request, response) => {
    response.writeHead(403, { 'content-type': 'application/json' });
    response.end('{"error":{"code":"FORBIDDEN","message":"said by the control plane itself"}}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy = await startTestProxy((server.address() as AddressInfo).port);
});
afterAll(async () => {
  proxy.stop();
  server.closeAllConnections();
  server.close();
  await rm(dir, { recursive: true, force: true });
});

it.each([{}, { NODE_USE_ENV_PROXY: '1' }])('registers through HTTPS_PROXY, with %j', async (more) => {
  proxy.seen.length = 0;
  const args = ['register', '--url', 'https://control-plane.test', '--token', 'rgt_x', '--identity-dir', dir];
  const environment = {
    HTTPS_PROXY: `http://ada:crate@${proxy.address}`,
    NODE_EXTRA_CA_CERTS: cert,
    ...more,
  };
  const { code, stderr } = await runProgram(args, environment);
  expect(stderr).toContain('said by the control plane itself');
  expect(stderr).not.toContain('crate');
  expect(code).toBe(1);
  expect(proxy.seen).toEqual([
    {
      call: 'CONNECT control-plane.test:443',
      authorization: `Basic ${Buffer.from('ada:crate').toString('base64')}`,
    },
  ]);
});

it('reaches a proxy that speaks TLS itself, by the name in its own certificate', async () => {
  proxy.seen.length = 0;
  const [host = '', port = ''] = proxy.address.split(':');
  const front = createTlsServer({ key: await readFile(key), cert: await readFile(cert) }, (client) => {
    const onward = connect(Number(port), host);
    client.on('error', () => onward.destroy()).pipe(onward);
    onward.on('error', () => client.destroy()).pipe(client);
  }).listen(0, '127.0.0.1');
  try {
    await once(front, 'listening');
    const args = [
      'register',
      '--url',
      'https://control-plane.test',
      '--token',
      'rgt_x',
      '--identity-dir',
      dir,
    ];
    const { stderr } = await runProgram(args, {
      HTTPS_PROXY: `https://localhost:${(front.address() as AddressInfo).port}`,
      NODE_EXTRA_CA_CERTS: cert,
    });
    expect(stderr).toContain('said by the control plane itself');
    expect(proxy.seen.map(({ call }) => call)).toEqual(['CONNECT control-plane.test:443']);
  } finally {
    front.close();
  }
});

it.each([{}, { NODE_USE_ENV_PROXY: '1' }])('dev needs no proxy, whatever is set, with %j', async (more) => {
  proxy.seen.length = 0;
  const environment = {
    HTTP_PROXY: `http://${proxy.address}`,
    HTTPS_PROXY: `http://${proxy.address}`,
    ...more,
  };
  const { code } = await runProgram(['dev', HELLO, '--host'], environment);
  expect(code).toBe(0);
  expect(proxy.seen).toEqual([]);
});

it('refuses an address that can’t be a proxy, before it does anything', async () => {
  const args = ['register', '--url', 'https://control-plane.test', '--token', 'rgt_x', '--identity-dir', dir];
  const { code, stderr } = await runProgram(args, { HTTPS_PROXY: 'socks5://ada:crate@proxy.test' });
  expect(stderr).toContain('HTTPS_PROXY: the value is no address of a proxy.');
  expect(stderr).not.toContain('crate');
  expect(code).toBe(2);
});
