import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startEmbeddedRedis, type EmbeddedRedis } from '../../../src/dev/embeddedRedis.js';
import { pingRedis } from '../../../src/dev/redisServer.js';
import { checkRedis, closeRedis, openRedis } from '../../../src/queue/redis.js';
import { silent } from '../../support/fleet.js';
import { startProgram } from '../../support/program.js';

let dir: string;
const running: EmbeddedRedis[] = [];
beforeEach(async () => {
  dir = await mkdtemp('/tmp/bwe-');
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((redis) => redis.stop()));
  await rm(dir, { recursive: true, force: true });
});

async function start(where = dir, path?: string): Promise<EmbeddedRedis> {
  const redis = await startEmbeddedRedis({
    dir: where,
    log: silent,
    ...(path === undefined ? {} : { path }),
  });
  running.push(redis);
  return redis;
}

const socketOf = (url: string) => decodeURIComponent(new URL(url).pathname);

async function withClient<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = openRedis({ url }, { use: 'commands', log: silent, name: 'test' });
  try {
    return await work(redis);
  } finally {
    await closeRedis(redis);
  }
}

describe('an embedded Redis', () => {
  it('is one that a fleet can be trusted to, behind a socket of this user alone', async () => {
    const { url } = await start();
    expect(await withClient(url, (redis) => checkRedis(redis))).toEqual([]);
    expect((await stat(socketOf(url))).mode & 0o777).toBe(0o700);
    expect(await withClient(url, (redis) => redis.config('GET', 'port'))).toEqual(['port', '0']);
  });

  it('keeps its data for the next start, and leaves no socket', async () => {
    const first = await start();
    await withClient(first.url, (redis) => redis.set('key', 'value'));
    await first.stop();
    await first.stop();
    expect((await readdir(dir)).toSorted()).toEqual(['appendonlydir', 'redis.log']);
    const second = await start();
    expect(await withClient(second.url, (redis) => redis.get('key'))).toBe('value');
  });

  it('finds room for its socket when the directory’s name is too long', async () => {
    const long = join(dir, 'x'.repeat(100), 'a #%? directory');
    const redis = await start(long);
    const url = redis.url;
    expect(Buffer.byteLength(socketOf(url))).toBeLessThan(104);
    expect(await withClient(url, (redis) => redis.ping())).toBe('PONG');
    await redis.stop();
    expect(await pingRedis(socketOf(url))).toBe('absent');
  });

  it('works from a directory with spaces and signs in its name', async () => {
    const { url } = await start(join(dir, 'a #%? directory'));
    expect(await withClient(url, (redis) => redis.ping())).toBe('PONG');
  });
});

describe('a second use of the directory', () => {
  it('is refused politely while the first lives', async () => {
    await start();
    await expect(startEmbeddedRedis({ dir, log: silent })).rejects.toMatchObject({
      code: 'EMBEDDED_REDIS_IN_USE',
      hint: expect.any(String) as string,
    });
  });

  it('is refused from another process, too', async () => {
    const other = startProgram('embedRedis', dir);
    const url = await other.line();
    await expect(startEmbeddedRedis({ dir, log: silent })).rejects.toMatchObject({
      code: 'EMBEDDED_REDIS_IN_USE',
    });
    expect(await pingRedis(socketOf(url))).toBe('ready');
    other.process.kill('SIGKILL');
    await other.ended;
  });

  it('is given to exactly one of many that come at once', async () => {
    const starts = await Promise.allSettled([1, 2, 3, 4, 5].map(() => start()));
    expect(starts.filter((each) => each.status === 'fulfilled')).toHaveLength(1);
  });

  it('follows a killed predecessor, whose server is gone and whose data is there', async () => {
    const predecessor = startProgram('embedRedis', dir);
    const url = await predecessor.line();
    await withClient(url, (redis) => redis.set('key', 'value'));
    predecessor.process.kill('SIGKILL');
    await predecessor.ended;
    const successor = await start();
    expect(await withClient(successor.url, (redis) => redis.get('key'))).toBe('value');
  });

  it('follows a killed predecessor with a long name, and removes what that had made for its socket', async () => {
    const long = join(dir, 'x'.repeat(100));
    const predecessor = startProgram('embedRedis', long);
    const old = dirname(socketOf(await predecessor.line()));
    predecessor.process.kill('SIGKILL');
    await predecessor.ended;
    await start(long);
    await expect(stat(old)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('follows an owner’s file that says nothing, or names a process that is another now', async () => {
    const file = join(dir, 'redis.owner.json');
    await writeFile(file, 'half a fi');
    await (await start()).stop();
    await writeFile(
      file,
      JSON.stringify({ pid: process.pid, start: 'earlier', socketPath: join(dir, 'redis.sock') }),
    );
    const { url } = await start();
    expect(await withClient(url, (redis) => redis.ping())).toBe('PONG');
  });
});

describe('a machine', () => {
  it('without a server is told how to get one', async () => {
    await expect(startEmbeddedRedis({ dir, log: silent, path: dir })).rejects.toMatchObject({
      code: 'REDIS_SERVER_MISSING',
      hint: expect.stringMatching(/apt-get install.*dnf install.*brew install/s) as string,
    });
  });

  it('with a server that does not start is told what it said, and nothing is left', async () => {
    const bin = join(dir, 'bin');
    await mkdir(bin);
    await writeFile(join(bin, 'valkey-server'), '#!/bin/sh\necho "no memory here"\nexit 1\n');
    await chmod(join(bin, 'valkey-server'), 0o755);
    const work = join(dir, 'work');
    await expect(startEmbeddedRedis({ dir: work, log: silent, path: bin })).rejects.toMatchObject({
      code: 'EMBEDDED_REDIS_FAILED',
      message: expect.stringContaining('no memory here') as string,
    });
    expect(await readdir(work)).toEqual(['redis.log']);
  });
});
