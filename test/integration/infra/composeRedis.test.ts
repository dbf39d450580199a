// The Redis of the compose file, started by its own script with a real server. It guards against a password that doesn't
// hold, or that others can read.

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readCompose } from '../../support/composeFile.js';

const PASSWORD = '6c1f0be29d7a44e8';
const READY_MS = 10_000;
const { redis: service } = readCompose('infra/compose.yaml', {
  BOARDWALK_FLEET_URL: 'https://cp.example.com',
  ENGINE_GROUP: '998',
}).services;

let dir: string;
let server: ChildProcess | undefined;

beforeEach(async () => {
  dir = await mkdtemp('/tmp/bwc-');
});

afterEach(async () => {
  if (server?.exitCode === null && server.signalCode === null) {
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  }
  await rm(dir, { recursive: true, force: true });
});

it('takes its settings and its password, and lets nobody in without it', async () => {
  await writeFile(join(dir, 'password'), `${PASSWORD}\n`);
  const child = startServer();
  await untilReady();
  const stranger = client();
  await expect(stranger.ping()).rejects.toThrow('NOAUTH');
  stranger.disconnect();
  const redis = client(PASSWORD);
  const settings = await redis.config('GET', 'append*', 'save', 'maxmemory-policy');
  redis.disconnect();
  expect(Object.fromEntries(pairs(settings))).toMatchObject({
    appendonly: 'yes',
    appendfsync: 'everysec',
    save: '',
    'maxmemory-policy': 'noeviction',
  });
  // The server itself is what was started: signals reach it.
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

it('has the password in no argument and no variable', async () => {
  await writeFile(join(dir, 'password'), PASSWORD);
  const child = startServer();
  await untilReady();
  const proc = `/proc/${String(child.pid)}`;
  expect(await readFile(`${proc}/cmdline`, 'utf8')).toContain('redis-server');
  expect(await readFile(`${proc}/cmdline`, 'utf8')).not.toContain(PASSWORD);
  expect(await readFile(`${proc}/environ`, 'utf8')).not.toContain(PASSWORD);
});

it('does not start without a password', async () => {
  const child = startServer();
  const [code] = (await once(child, 'exit')) as [number | null];
  expect(code).toBe(1);
});

it('is healthy when it answers, and only with the right password', async () => {
  await writeFile(join(dir, 'password'), PASSWORD);
  startServer();
  await untilReady();
  const [, command = ''] = service?.healthcheck?.test ?? [];
  const check = here(command).replace('redis-cli', `redis-cli -s ${join(dir, 's')}`);
  await expect(promisify(execFile)('sh', ['-c', check])).resolves.toBeDefined();
  await writeFile(join(dir, 'password'), 'another');
  await expect(promisify(execFile)('sh', ['-c', check])).rejects.toMatchObject({ code: 1 });
});

/** The script as it is, but for the places that only a container has, and a socket in place of the port. */
function startServer(): ChildProcess {
  const [shell = '', ...flags] = service?.entrypoint ?? [];
  const [script = ''] = service?.command ?? [];
  const withSocket = here(script).replace(/^dir .*$/m, `dir ${dir}\nport 0\nunixsocket ${join(dir, 's')}`);
  server = spawn(shell, [...flags, withSocket], { stdio: 'ignore' });
  return server;
}

function here(text: string): string {
  return text.replaceAll('/run/secrets/redis_password', join(dir, 'password'));
}

function client(password?: string): Redis {
  const redis = new Redis({
    path: join(dir, 's'),
    enableReadyCheck: false,
    ...(password === undefined ? {} : { password }),
  });
  // What a stranger is told comes with each of its commands too.
  redis.on('error', () => undefined);
  return redis;
}

async function untilReady(): Promise<void> {
  const until = performance.now() + READY_MS;
  while (!existsSync(join(dir, 's'))) {
    if (performance.now() > until) throw new Error('Redis did not start.');
    await pause(20);
  }
}

function pairs(flat: readonly string[]): readonly (readonly [string, string])[] {
  return flat.flatMap((key, index) => (index % 2 === 0 ? [[key, flat[index + 1] ?? '']] : []));
}
