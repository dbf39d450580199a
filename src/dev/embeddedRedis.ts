// A Redis of our own for one machine: no TCP port, a Unix socket that only this user can open, everything on disk, and
// gone when we are. A small watcher holds a pipe to us and ends the server when the pipe closes, so that a kill -9 of
// this process leaves no server behind that the next start would collide with.
// It is a real server from the machine's packages; nothing is downloaded and nothing is imitated.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Logger } from 'pino';
import { OperatorError } from '../contract/operatorError.js';
import { disown, ownDirectory, ownerLives, releaseDirectory } from './directoryOwner.js';
import { findRedisServer, pingRedis } from './redisServer.js';

export interface EmbeddedRedis {
  /** `unix:///…` */
  readonly url: string;
  /** Settles only when the server ends by itself, with the error for whoever runs it. */
  readonly died: Promise<OperatorError>;
  /** Ends the server with its data on disk and waits for it; safe to call twice. */
  stop(): Promise<void>;
}

/** A socket's address holds 104 bytes on macOS and 108 on Linux, with the closing NUL. */
const LONGEST_SOCKET_PATH = 100;
const SHORT_DIR_PREFIX = 'bwf-redis-';
const READY_TIMEOUT_MS = 10_000;
/** Reading back a large append-only file takes its time; it ends, or the server does. */
const LOADING_TIMEOUT_MS = 300_000;
const STOP_TIMEOUT_MS = 10_000;
/** How long a killed predecessor's server may take to write its data and go. */
const PREDECESSOR_TIMEOUT_MS = 10_000;
const POLL_MS = 10;

/**
 * Starts a server on a directory, which it may share with nobody while it runs; its data stays for the next start.
 *
 * @param options `path`: where to look for a server program. @default the environment's PATH
 * @throws OperatorError `REDIS_SERVER_MISSING`, `EMBEDDED_REDIS_IN_USE` or `EMBEDDED_REDIS_FAILED`
 */
export async function startEmbeddedRedis(options: {
  readonly dir: string;
  readonly log: Logger;
  readonly path?: string;
}): Promise<EmbeddedRedis> {
  const program = await findRedisServer(options.path ?? process.env['PATH'] ?? '');
  if (program === null) throw serverMissing();
  const dir = resolve(options.dir);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const socket = await placeSocket(dir);
  try {
    await takeDirectory(dir, socket.path);
  } catch (error) {
    // What lies in the directory is its owner's.
    await removeShortDir(socket);
    throw error;
  }

  const logFile = join(dir, 'redis.log');
  const server = await spawnServer(program, dir, socket.path, logFile);
  const watcher = spawnWatcher(server);
  const clean = async (): Promise<void> => {
    watcher.kill('SIGKILL');
    await rm(socket.path, { force: true });
    await removeShortDir(socket);
    await releaseDirectory(dir);
  };
  try {
    await untilReady(server, socket.path, logFile);
  } catch (error) {
    await endServer(server);
    await clean();
    throw error;
  }
  let onDeath: (code: number | null, signal: string | null) => void = () => undefined;
  const died = new Promise<OperatorError>((resolve) => {
    onDeath = (code, signal) => {
      // Nobody is left whom the watcher should end, and its number may soon be another's.
      watcher.kill('SIGKILL');
      options.log.error({ code, signal, logFile }, 'the embedded Redis ended by itself');
      resolve(endedByItself(signal ?? `exit code ${code}`, logFile));
    };
  });
  server.once('exit', onDeath);
  if (hasEnded(server)) onDeath(server.exitCode, server.signalCode);

  let stopped: Promise<void> | undefined;
  return {
    url: `unix://${pathToFileURL(socket.path).pathname}`,
    died,
    stop: () =>
      (stopped ??= (async () => {
        server.off('exit', onDeath);
        await endServer(server);
        await clean();
      })()),
  };
}

interface SocketPlace {
  readonly path: string;
  /** Made for this start alone, where the directory's own name is too long; null = the socket lies in the directory. */
  readonly shortDir: string | null;
}

async function placeSocket(dir: string): Promise<SocketPlace> {
  const path = join(dir, 'redis.sock');
  if (Buffer.byteLength(path) <= LONGEST_SOCKET_PATH) return { path, shortDir: null };
  const base = Buffer.byteLength(tmpdir()) < 60 ? tmpdir() : '/tmp';
  const shortDir = await mkdtemp(join(base, SHORT_DIR_PREFIX));
  return { path: join(shortDir, 'redis.sock'), shortDir };
}

/** Where a predecessor had its socket, if it had made a directory for it. */
function shortDirOf(socketPath: string, dir: string): string | null {
  const parent = dirname(socketPath);
  return parent !== dir && basename(parent).startsWith(SHORT_DIR_PREFIX) ? parent : null;
}

async function removeShortDir({ shortDir }: Pick<SocketPlace, 'shortDir'>): Promise<void> {
  if (shortDir !== null) await rm(shortDir, { recursive: true, force: true });
}

async function takeDirectory(dir: string, socketPath: string): Promise<void> {
  const deadline = performance.now() + PREDECESSOR_TIMEOUT_MS;
  for (;;) {
    const owner = await ownDirectory(dir, socketPath);
    if (owner === 'owned') return;
    if (await ownerLives(owner)) throw inUse(dir, `process ${owner.pid}`);
    if ((await pingRedis(owner.socketPath)) === 'absent') {
      await disown(dir, owner);
      await removeShortDir({ shortDir: shortDirOf(owner.socketPath, dir) });
    } else if (performance.now() > deadline) {
      throw inUse(dir, `a Redis that a killed process left behind at ${owner.socketPath}`);
    } else {
      await delay(POLL_MS);
    }
  }
}

async function spawnServer(
  program: string,
  dir: string,
  socketPath: string,
  logFile: string,
): Promise<ChildProcess> {
  const args = ['--port', '0', '--unixsocket', socketPath, '--unixsocketperm', '700', '--dir', dir];
  args.push('--appendonly', 'yes', '--save', '', '--maxmemory-policy', 'noeviction');
  args.push('--daemonize', 'no', '--loglevel', 'warning');
  const output = await open(logFile, 'w', 0o600);
  try {
    // In a group of its own: a Ctrl-C in the terminal is for us, who still need it while we stop.
    const server = spawn(program, args, { stdio: ['ignore', output.fd, output.fd], detached: true });
    server.once('error', () => undefined);
    server.unref();
    return server;
  } finally {
    await output.close();
  }
}

function spawnWatcher(server: ChildProcess): ChildProcess {
  const watcher = spawn(
    '/bin/sh',
    ['-c', 'cat >/dev/null; kill -TERM "$0" 2>/dev/null', String(server.pid)],
    {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    },
  );
  watcher.once('error', () => undefined);
  watcher.unref();
  return watcher;
}

async function untilReady(server: ChildProcess, socketPath: string, logFile: string): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    if (server.pid === undefined || hasEnded(server)) throw await startFailed('ended at once', logFile);
    const state = await pingRedis(socketPath);
    if (state === 'ready') return;
    const patienceMs = state === 'loading' ? LOADING_TIMEOUT_MS : READY_TIMEOUT_MS;
    if (performance.now() - startedAt > patienceMs) throw await startFailed('did not answer', logFile);
    await delay(POLL_MS);
  }
}

async function endServer(server: ChildProcess): Promise<void> {
  if (server.pid === undefined || hasEnded(server)) return;
  server.ref();
  const exited = once(server, 'exit');
  server.kill('SIGTERM');
  const impatience = setTimeout(() => server.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await exited;
  clearTimeout(impatience);
}

function hasEnded(server: ChildProcess): boolean {
  return server.exitCode !== null || server.signalCode !== null;
}

function serverMissing(): OperatorError {
  return new OperatorError(
    'REDIS_SERVER_MISSING',
    'There is no redis-server or valkey-server on this machine (PATH was searched).',
    {
      hint: [
        'Install one: Debian, Ubuntu: `apt-get install -y redis-server`; Fedora: `dnf install -y valkey`;',
        'macOS: `brew install redis`. Or give the address of a running one with --redis-url.',
      ].join(' '),
    },
  );
}

function inUse(dir: string, by: string): OperatorError {
  return new OperatorError('EMBEDDED_REDIS_IN_USE', `The directory ${dir} is in use by ${by}.`, {
    hint: 'Stop that one, or choose another directory with --work-dir.',
  });
}

async function endedByItself(how: string, logFile: string): Promise<OperatorError> {
  return new OperatorError(
    'EMBEDDED_REDIS_DIED',
    `The embedded Redis ended by itself (${how})${await lastWords(logFile)}.`,
    { hint: `Its output is in ${logFile}. Nothing goes on without it: start again.` },
  );
}

async function startFailed(how: string, logFile: string): Promise<OperatorError> {
  return new OperatorError('EMBEDDED_REDIS_FAILED', `The embedded Redis ${how}${await lastWords(logFile)}.`, {
    hint: `Its output is in ${logFile}.`,
  });
}

async function lastWords(logFile: string): Promise<string> {
  const output = await readFile(logFile, 'utf8').catch(() => '');
  const tail = output.trim().split('\n').slice(-3).join(' | ').replace(/\.$/, '');
  return tail === '' ? '' : `: ${tail}`;
}
