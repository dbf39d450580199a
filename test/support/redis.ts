// A private Redis for a test: own process, no TCP port, a Unix socket in a short directory. Real, never a mock.
// It dies with the test process, whatever ends that.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { RedisSettings } from '../../src/queue/redis.js';

export interface TestRedis {
  readonly url: string;
  readonly settings: RedisSettings;
  readonly socketPath: string;
  /** Runs one command on a connection of its own, as redis-cli does. */
  cli(...command: readonly string[]): Promise<unknown>;
  /** Every key and everything in it, as one text per key. */
  dump(): Promise<ReadonlyMap<string, string>>;
  /** kill -9. */
  kill(): Promise<void>;
  /** SIGTERM, as an operator restarts it. */
  shutdown(): Promise<void>;
  /** Starts it again on the same socket, after {@link kill} or {@link shutdown}. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const READY_TIMEOUT_MS = 10_000;

export async function startTestRedis(
  options: { readonly appendonly?: boolean; readonly args?: readonly string[] } = {},
): Promise<TestRedis> {
  const dir = await mkdtemp('/tmp/bwt-');
  const socketPath = join(dir, 'r.sock');
  const settings: RedisSettings = { url: `unix://${socketPath}` };
  const args = [
    '--port',
    '0',
    '--unixsocket',
    socketPath,
    '--dir',
    dir,
    '--save',
    '',
    '--loglevel',
    'warning',
  ];
  args.push('--appendonly', options.appendonly === true ? 'yes' : 'no', '--maxmemory-policy', 'noeviction');
  args.push('--enable-debug-command', 'local', ...(options.args ?? []));
  let server: { readonly process: ChildProcess; readonly watcher: ChildProcess } | undefined;

  const start = async (): Promise<void> => {
    const redis = spawn('redis-server', args, { stdio: ['ignore', 'ignore', 'inherit'] });
    // Lives on a pipe that we hold: when this process ends, however it does, the pipe closes and the server is killed.
    const watcher = spawn('/bin/sh', ['-c', 'cat >/dev/null; kill -9 "$0" 2>/dev/null', String(redis.pid)], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    redis.unref();
    watcher.unref();
    server = { process: redis, watcher };
    await untilReady(socketPath, redis);
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ending = server;
    server = undefined;
    if (ending === undefined) return;
    ending.watcher.kill('SIGKILL');
    if (ending.process.exitCode !== null || ending.process.signalCode !== null) return;
    ending.process.ref();
    const exited = once(ending.process, 'exit');
    ending.process.kill(signal);
    await exited;
  };
  const withClient = async <T>(work: (redis: Redis) => Promise<T>): Promise<T> => {
    const redis = new Redis({ path: socketPath, retryStrategy: () => null, maxRetriesPerRequest: 0 });
    redis.on('error', () => undefined);
    try {
      return await work(redis);
    } finally {
      redis.disconnect();
    }
  };

  await start();
  return {
    url: settings.url,
    settings,
    socketPath,
    cli: (...[name = 'PING', ...rest]) => withClient((redis) => redis.call(name, ...rest)),
    dump: () => withClient(dumpAll),
    kill: () => end('SIGKILL'),
    shutdown: () => end('SIGTERM'),
    start,
    stop: async () => {
      await end('SIGKILL');
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function untilReady(socketPath: string, redis: ChildProcess): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (performance.now() < deadline) {
    if (redis.exitCode !== null) throw new Error(`redis-server ended with exit code ${redis.exitCode}.`);
    if (await answersPing(socketPath)) return;
    await delay(10);
  }
  throw new Error('redis-server did not become ready.');
}

async function answersPing(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(socketPath, () => socket.write('PING\r\n'));
    socket.once('data', (data) => {
      socket.destroy();
      // A server that wants a password is as ready as one that doesn't.
      resolve(/^(\+PONG|-NOAUTH)/.test(data.toString()));
    });
    socket.once('error', () => resolve(false));
  });
}

async function dumpAll(redis: Redis): Promise<ReadonlyMap<string, string>> {
  const keys = await redis.keys('*');
  const texts = await Promise.all(
    keys.map(async (key) => {
      const type = await redis.type(key);
      if (type === 'string') return redis.get(key);
      if (type === 'hash') return JSON.stringify(await redis.hgetall(key));
      if (type === 'list') return JSON.stringify(await redis.lrange(key, 0, -1));
      if (type === 'set') return JSON.stringify(await redis.smembers(key));
      if (type === 'zset') return JSON.stringify(await redis.zrange(key, '0', '-1', 'WITHSCORES'));
      if (type === 'stream') return JSON.stringify(await redis.xrange(key, '-', '+'));
      return '';
    }),
  );
  return new Map(keys.map((key, index) => [key, texts[index] ?? '']));
}
