// Is this Redis one that a fleet can be trusted to? Asked once at start, so that a wrong one is an error for a person
// and not a loss weeks later: unreachable, no Redis, refused, too old, or set to throw keys away when memory is short (P6).

import type { Redis } from 'ioredis';
import { z } from 'zod';
import { OperatorError } from '../contract/operatorError.js';
import { describeRedis } from './redisAddress.js';

const configReply = z.tuple([z.string(), z.string()]);
const READY_TIMEOUT_MS = 5_000;
const NEEDED_VERSION = [6, 2] as const;
/** The client's words for a reply that is not Redis' protocol. */
const OTHER_PROTOCOL = /Unknown RESP type|ParserError|Protocol error/;
const AUTH_REFUSED = /^(WRONGPASS|NOAUTH|NOPERM|ERR (AUTH|invalid password|Client sent AUTH))/;

/**
 * Waits until Redis can be used and looks at how it is set.
 *
 * @returns warnings for a person, none when all is well.
 * @throws OperatorError `REDIS_UNREACHABLE`, `REDIS_OTHER_SERVER`, `REDIS_AUTH`, `REDIS_VERSION` or `REDIS_EVICTION`
 */
export async function checkRedis(
  redis: Redis,
  options: { readonly timeoutMs?: number } = {},
): Promise<readonly string[]> {
  const where = describeRedis(redis.options);
  await waitUntilReady(redis, where, options.timeoutMs ?? READY_TIMEOUT_MS);
  const info = await readInfo(redis);
  if (info === undefined)
    return [
      `Redis at ${where} doesn't let this user read INFO: version, eviction and persistence were not checked.`,
    ];
  checkVersion(info, where);
  await checkEviction(redis, info, where);
  return info.get('aof_enabled') === '0'
    ? [
        `Redis at ${where} keeps no append-only file: what was written since its last snapshot is lost if it crashes.`,
      ]
    : [];
}

async function waitUntilReady(redis: Redis, where: string, timeoutMs: number): Promise<void> {
  if (redis.status === 'ready') return;
  let lastError: Error | undefined;
  let settle: ((error?: OperatorError) => void) | undefined;
  const onReady = () => settle?.();
  const onError = (error: Error) => {
    lastError = error;
    if (AUTH_REFUSED.test(error.message)) settle?.(refused(where, error));
    if (OTHER_PROTOCOL.test(`${error.name} ${error.message}`)) settle?.(otherServer(where, error));
  };
  const timer = setTimeout(() => settle?.(unreachable(where, lastError)), timeoutMs);
  redis.on('ready', onReady).on('error', onError);
  try {
    await new Promise<void>((resolve, reject) => {
      settle = (error) => (error === undefined ? resolve() : reject(error));
    });
  } finally {
    clearTimeout(timer);
    redis.off('ready', onReady).off('error', onError);
  }
}

function unreachable(where: string, cause: Error | undefined): OperatorError {
  const why = cause === undefined ? 'nothing answers' : reasonOf(cause);
  return new OperatorError('REDIS_UNREACHABLE', `Redis at ${where} can't be reached: ${why}.`, {
    hint: 'Check that it runs, that the URL is right (rediss:// for TLS) and that nothing stands in between.',
    cause,
  });
}

function otherServer(where: string, cause: Error): OperatorError {
  return new OperatorError('REDIS_OTHER_SERVER', `What answers at ${where} is not a Redis.`, {
    hint: 'Check host and port; a Redis with TLS needs rediss://.',
    cause,
  });
}

function refused(where: string, cause: Error): OperatorError {
  if (cause.message.startsWith('NOAUTH'))
    return new OperatorError('REDIS_AUTH', `Redis at ${where} needs a password.`, {
      hint: 'Set BOARDWALK_FLEET_REDIS_PASSWORD or BOARDWALK_FLEET_REDIS_PASSWORD_FILE.',
      cause,
    });
  return new OperatorError('REDIS_AUTH', `Redis at ${where} refused the login: ${reasonOf(cause)}.`, {
    hint: 'Check the user and the password, also in the password file.',
    cause,
  });
}

/** A name that is refused on each of its addresses comes as an error without words. */
function reasonOf(error: Error & { readonly code?: string }): string {
  const words = error.message === '' ? (error.code ?? error.name) : error.message;
  return words.replace(/\.$/, '');
}

async function readInfo(redis: Redis): Promise<ReadonlyMap<string, string> | undefined> {
  try {
    const lines = (await redis.info()).split(/\r?\n/).filter((line) => line.includes(':'));
    return new Map(
      lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
    );
  } catch {
    return undefined;
  }
}

function checkVersion(info: ReadonlyMap<string, string>, where: string): void {
  // Valkey goes on from Redis 7.2 and names that version here too.
  const version = info.get('redis_version') ?? '';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > NEEDED_VERSION[0] || (major === NEEDED_VERSION[0] && minor >= NEEDED_VERSION[1])) return;
  throw new OperatorError(
    'REDIS_VERSION',
    `Redis at ${where} is version ${version || 'unknown'}; ${NEEDED_VERSION.join('.')} or newer is needed.`,
  );
}

async function checkEviction(redis: Redis, info: ReadonlyMap<string, string>, where: string): Promise<void> {
  const policy = info.get('maxmemory_policy') ?? (await evictionByConfig(redis));
  if (policy === undefined || policy === 'noeviction') return;
  throw new OperatorError(
    'REDIS_EVICTION',
    `Redis at ${where} has maxmemory-policy ${policy}: it would throw away queued runs when memory is short.`,
    {
      hint: 'Set it to noeviction: `redis-cli config set maxmemory-policy noeviction`, and in its configuration file.',
    },
  );
}

async function evictionByConfig(redis: Redis): Promise<string | undefined> {
  try {
    return configReply.parse(await redis.config('GET', 'maxmemory-policy'))[1];
  } catch {
    // Hosted offers often forbid CONFIG; their consoles say it.
    return undefined;
  }
}
