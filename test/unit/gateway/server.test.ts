import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { Agent, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/operatorError.js';
import { type DoorHandler, Gateway, type OpenDoor } from '../../../src/executor/gateway/server.js';
import { ask, bare, open } from './overSocket.js';

const log = pino({ level: 'silent' });

class Echo implements DoorHandler {
  closed = false;
  constructor(
    readonly runId: string,
    readonly answer: (req: IncomingMessage, res: ServerResponse) => void = (_req, res) => res.end(this.runId),
  ) {}

  handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    req.on('error', () => undefined);
    this.answer(req, res);
    return Promise.resolve();
  }

  close(): void {
    this.closed = true;
  }

  settled(): Promise<void> {
    return Promise.resolve();
  }
}

describe('the gateway', () => {
  let root: string;
  let gateway: Gateway;

  beforeEach(async () => {
    root = mkdtempSync(join(tmpdir(), 'gw-'));
    gateway = new Gateway({
      socketDir: join(root, 's'),
      log,
      timeouts: { headersMs: 300, requestMs: 600, checkMs: 100 },
    });
    await gateway.start();
  });

  afterEach(async () => {
    await gateway.stop();
    rmSync(root, { recursive: true });
  });

  async function hello(door: OpenDoor, bearer: string = door.bearer): Promise<number> {
    return (await ask(door.socketPath, { path: '/', bearer })).status;
  }

  test('gives every run a socket and a bearer of its own, in a directory that nobody else may enter', async () => {
    const a = await gateway.openDoor(new Echo('a'));
    const b = await gateway.openDoor(new Echo('b'));
    expect(a.socketPath).not.toBe(b.socketPath);
    expect(Buffer.from(a.bearer, 'base64url')).toHaveLength(32);
    expect(statSync(join(root, 's')).mode & 0o777).toBe(0o700);
    expect((await ask(a.socketPath, { path: '/', bearer: a.bearer })).text).toBe('a');
    expect((await ask(b.socketPath, { path: '/', bearer: b.bearer })).text).toBe('b');
  });

  test('answers 401 without the bearer, with another one and with that of another run', async () => {
    const a = await gateway.openDoor(new Echo('a'));
    const b = await gateway.openDoor(new Echo('b'));
    const missing = await ask(a.socketPath, { path: '/' });
    expect(missing.status).toBe(401);
    expect(missing.json()).toMatchObject({ error: { code: 'UNAUTHORIZED' } });
    expect(await hello(a, `${a.bearer}x`)).toBe(401);
    expect(await hello(a, '')).toBe(401);
    expect(await hello(a, b.bearer)).toBe(401);
    expect(await hello(a)).toBe(200);
  });

  test('closing a door cuts its connections, removes its socket, and leaves the others alone', async () => {
    const door = new Echo('a', (_req, res) => res.write('begun'));
    const a = await gateway.openDoor(door);
    const b = await gateway.openDoor(new Echo('b'));
    const { res } = await open(a.socketPath, { path: '/', bearer: a.bearer });
    const idle = await bare(a.socketPath);
    const cut = new Promise((resolve) => res.on('error', resolve));
    res.resume();
    await Promise.all([a.close(), a.close()]);
    expect(await cut).toBeInstanceOf(Error);
    await idle.said;
    expect(door.closed).toBe(true);
    expect(existsSync(a.socketPath)).toBe(false);
    await expect(ask(a.socketPath, { path: '/', bearer: a.bearer })).rejects.toThrow(/ENOENT/);
    expect(await hello(b)).toBe(200);
  });

  test('stopping closes every door, twice is no harm, and no door opens afterwards', async () => {
    const a = await gateway.openDoor(new Echo('a'));
    await gateway.stop();
    await gateway.stop();
    expect(existsSync(a.socketPath)).toBe(false);
    await expect(gateway.openDoor(new Echo('b'))).rejects.toThrow();
  });

  test("steps over a socket that is there already, because it may be another process's (R2)", async () => {
    mkdirSync(join(root, 's', '1'));
    const a = await gateway.openDoor(new Echo('a'));
    expect(a.dir).toBe(join(root, 's', '2'));
    expect(existsSync(join(root, 's', '1'))).toBe(true);
    expect(await hello(a)).toBe(200);
  });

  test('survives garbage, oversized headers and a client that leaves in the middle', async () => {
    const a = await gateway.openDoor(new Echo('a'));
    const garbage = await bare(a.socketPath);
    garbage.socket.write('\x00\x01 what is this\r\n\r\n');
    expect(await garbage.said).toMatch(/^HTTP\/1.1 400 /);

    const huge = await bare(a.socketPath);
    huge.socket.write(`GET / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`);
    expect(await huge.said).toMatch(/^HTTP\/1.1 431 /);

    const leaving = await bare(a.socketPath);
    leaving.socket.write(
      `POST / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${a.bearer}\r\ncontent-length: 10\r\n\r\nabc`,
    );
    leaving.socket.destroy();
    await leaving.said;

    const tunnel = await bare(a.socketPath);
    tunnel.socket.write('CONNECT 127.0.0.1:80 HTTP/1.1\r\nhost: x\r\n\r\n');
    await tunnel.said;
    expect(await hello(a)).toBe(200);
  });

  test('a client that says nothing, or sends its request drop by drop, is shown out', async () => {
    const a = await gateway.openDoor(new Echo('a'));
    const silent = await bare(a.socketPath);
    const drops = await bare(a.socketPath);
    drops.socket.write('GET / HTTP/1.1\r\nx:');
    const body = await bare(a.socketPath);
    body.socket.write(
      `POST / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${a.bearer}\r\ncontent-length: 10\r\n\r\n`,
    );
    const timer = setInterval(() => drops.socket.write('y'), 50);
    try {
      expect(await silent.said).toMatch(/^HTTP\/1.1 408 /);
      // What it is told can be lost with the reset that its next drop meets.
      expect(await drops.said).toMatch(/^(HTTP\/1.1 408 |$)/);
      // Its answer was given without the body; the connection that waits for the rest is cut.
      await body.said;
    } finally {
      clearInterval(timer);
    }
    expect(await hello(a)).toBe(200);
  });

  test('serves pipelined requests in their order and keeps a connection for the next', async () => {
    const seen: string[] = [];
    const a = await gateway.openDoor(
      new Echo('a', (req, res) => {
        seen.push(req.url ?? '');
        res.end(req.url);
      }),
    );
    const { socket, said } = await bare(a.socketPath);
    const get = (path: string, extra = ''): string =>
      `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${a.bearer}\r\n${extra}\r\n`;
    socket.write(get('/p1') + get('/p2') + get('/p3', 'connection: close\r\n'));
    const answers = await said;
    expect([...answers.matchAll(/\/p\d/g)].map(String)).toEqual(['/p1', '/p2', '/p3']);
    expect(seen).toEqual(['/p1', '/p2', '/p3']);

    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const first = await open(a.socketPath, { path: '/4', bearer: a.bearer, agent });
    first.res.resume();
    await new Promise((resolve) => first.res.on('close', resolve));
    const second = await open(a.socketPath, { path: '/5', bearer: a.bearer, agent });
    expect(second.req.reusedSocket).toBe(true);
    agent.destroy();
  });

  test('a door that throws costs its connection and nothing else', async () => {
    const a = await gateway.openDoor({
      runId: 'a',
      handle: () => Promise.reject(new Error('unexpected')),
      close: () => undefined,
      settled: () => Promise.resolve(),
    });
    await expect(ask(a.socketPath, { path: '/', bearer: a.bearer })).rejects.toThrow();
    const b = await gateway.openDoor(new Echo('b'));
    expect(await hello(b)).toBe(200);
  });
});

describe('a socket directory that can not be used', () => {
  test('is named, with what to do', async () => {
    const root = mkdtempSync(join(tmpdir(), 'gw-'));
    try {
      writeFileSync(join(root, 'file'), '');
      const onFile = new Gateway({ socketDir: join(root, 'file'), log });
      await expect(onFile.start()).rejects.toMatchObject({ code: 'GATEWAY_SOCKET_DIR' });
      const tooLong = new Gateway({ socketDir: join(root, 'x'.repeat(100)), log });
      await expect(tooLong.start()).rejects.toBeInstanceOf(OperatorError);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});
