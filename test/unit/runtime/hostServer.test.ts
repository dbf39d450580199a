// The host's end of the socket, with a program that writes whatever it likes.

import { once } from 'node:events';
import { access, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HostServer } from '../../../src/runtime/hostServer.js';
import { RunFailure } from '../../../src/runtime/runFailure.js';

let dir: string;
let server: HostServer;
let path: string;
let logged: string[];
let notified: unknown[];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'hs'));
  logged = [];
  notified = [];
  server = new HostServer({
    socketDir: join(dir, 'h'),
    onRequest: (method, params) => {
      if (method === 'fail') throw new RunFailure('NOT_FOUND', 'no such thing', { hint: 'look again' });
      if (method === 'crash') return Promise.reject(new TypeError('bug'));
      return Promise.resolve({ method, params });
    },
    onNotification: (method, params) => void notified.push([method, params]),
    log: (message) => logged.push(message),
  });
  path = await server.start();
});

afterEach(async () => {
  await server.stop();
  await rm(dir, { recursive: true, force: true });
});

async function connected(): Promise<{ socket: Socket; lines: AsyncIterator<string> }> {
  const socket = connect(path);
  await once(socket, 'connect');
  const { createInterface } = await import('node:readline');
  return { socket, lines: createInterface(socket)[Symbol.asyncIterator]() };
}

async function nextFrame(lines: AsyncIterator<string>): Promise<unknown> {
  const { value } = (await lines.next()) as { value: string };
  return JSON.parse(value);
}

describe('the host socket', () => {
  test('is private, and gone by name as soon as the loader has connected (R15)', async () => {
    expect((await stat(dirname(path))).mode & 0o777).toBe(0o700);
    const { socket, lines } = await connected();
    socket.write('{"jsonrpc":"2.0","id":1,"method":"m"}\n');
    await nextFrame(lines);
    await expect(access(path)).rejects.toThrow();
    socket.destroy();
    await server.stop();
    expect(await readdir(dirname(path))).toEqual([]);
  });

  test('answers requests with results and typed errors, tolerates unknown members, takes notifications', async () => {
    const { socket, lines } = await connected();
    socket.write('{"jsonrpc":"2.0","method":"phase","params":{"name":"x"},"extra":1}\n');
    socket.write('{"jsonrpc":"2.0","id":"a","method":"m","params":{"q":1},"trace":true}\n');
    expect(await nextFrame(lines)).toEqual({
      jsonrpc: '2.0',
      id: 'a',
      result: { method: 'm', params: { q: 1 } },
    });
    socket.write('{"jsonrpc":"2.0","id":2,"method":"fail"}\n');
    expect(await nextFrame(lines)).toEqual({
      jsonrpc: '2.0',
      id: 2,
      error: { code: 'NOT_FOUND', message: 'no such thing', data: { hint: 'look again' } },
    });
    socket.write('{"jsonrpc":"2.0","id":3,"method":"crash"}\n');
    expect(await nextFrame(lines)).toMatchObject({ id: 3, error: { code: 'TypeError', message: 'bug' } });
    expect(notified).toEqual([['phase', { name: 'x' }]]);
  });

  test('drops what is not JSON, answers what is no frame, and goes on', async () => {
    const { socket, lines } = await connected();
    socket.write(Buffer.from([0xff, 0xfe, 0x0a]));
    socket.write('}{\n\n7\n');
    expect(await nextFrame(lines)).toMatchObject({ id: null, error: { code: 'PROTOCOL_ERROR' } });
    socket.write('{"jsonrpc":"2.0","id":1,"method":"m"}\n');
    expect(await nextFrame(lines)).toMatchObject({ id: 1 });
    expect(logged).toHaveLength(2);
  });

  test('ends a connection whose line never ends', async () => {
    const socket = connect(path);
    await once(socket, 'connect');
    socket.on('error', () => undefined);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const block = Buffer.alloc(1 << 20, 'x');
    for (let count = 0; count < 20 && !socket.destroyed; count += 1) socket.write(block);
    await closed;
    await server.ended;
    expect(logged.some((line) => line.includes('longer than'))).toBe(true);
  });

  test('tells a cancel to a program that connects after it', async () => {
    server.cancel('cancelled');
    const { lines } = await connected();
    expect(await nextFrame(lines)).toEqual({
      jsonrpc: '2.0',
      method: 'cancel',
      params: { reason: 'cancelled' },
    });
  });
});
