// Connections to Redis, always of our own making: the queue library's default back-off reaches 20 s. A connection
// reconnects for ever, whatever ended it (a cut, a failover, a name that doesn't resolve: P1, P2, P3), says so once an
// outage, and never throws an error that nobody asked for. How long a call may wait is its caller's to bound.

import { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { redisAddress, type ConnectionOptions, type RedisSettings } from './redisAddress.js';

export type { RedisSettings } from './redisAddress.js';
export { checkRedis } from './redisCheck.js';

/** What a connection is for. `blocking` may hold a read open; `bullmq` is given to the queue library. */
export type RedisUse = 'commands' | 'blocking' | 'bullmq';

const CONNECT_TIMEOUT_MS = 5_000;
const DISCONNECT_TIMEOUT_MS = 50;
const RECONNECT_FIRST_MS = 50;
/** A first start within 2 s of Redis' return (design section 12) bounds the pause between attempts. */
const RECONNECT_CEILING_MS = 2_000;
/** A connection on which a command gets no byte for this long is cut and made anew; a half-open one never errs. */
const SILENCE_MS = { commands: 10_000, blocking: undefined, bullmq: 10_000 } as const;

/** Opens a connection; it connects by itself, and commands wait until it has. */
export function openRedis(
  settings: RedisSettings,
  options: { readonly use: RedisUse; readonly log: Logger; readonly name: string },
): Redis {
  const { use, log, name } = options;
  const redis = new Redis({
    ...redisAddress(settings),
    ...connectionOptions(use),
    connectionName: `boardwalk-fleet:${name.replaceAll(/[^A-Za-z0-9._:-]/g, '_')}`,
  });
  reportOutages(redis, log.child({ redis: name }));
  return redis;
}

function connectionOptions(use: RedisUse): ConnectionOptions {
  const silenceMs = SILENCE_MS[use];
  return {
    connectTimeout: CONNECT_TIMEOUT_MS,
    // How long a closed connection may wait for the server to agree. One in a blocking read never hears from it, and
    // would keep the process alive for the library's 2 s (P21).
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: null,
    retryStrategy: reconnectDelayMs,
    // After a failover behind one address the old primary may still answer: only a new connection finds the new one.
    // Servers before 7.0 tell it from within a script in the middle of another sentence.
    reconnectOnError: (error) => (error.message.includes('READONLY') ? 2 : false),
    ...(silenceMs === undefined ? {} : { socketTimeout: silenceMs }),
  };
}

function reconnectDelayMs(times: number): number {
  const ceiling = Math.min(RECONNECT_CEILING_MS, RECONNECT_FIRST_MS * 2 ** Math.min(times, 10));
  return Math.round(ceiling / 2 + (Math.random() * ceiling) / 2);
}

function reportOutages(redis: Redis, log: Logger): void {
  let down = false;
  let wasReady = false;
  redis.on('error', (error: Error & { command?: unknown; code?: unknown }) => {
    // The library hangs the failed command on its error, for a refused login with the password; waiting commands are
    // refused with this very object.
    delete error.command;
    if (down) return;
    // What never was can't be lost; whoever waits for the first connection says what keeps it away.
    if (!wasReady) return log.debug({ reason: error.message, code: error.code }, 'no Redis connection yet');
    down = true;
    log.warn({ reason: error.message, code: error.code }, 'Redis connection lost, reconnecting');
  });
  redis.on('ready', () => {
    wasReady = true;
    if (!down) return;
    down = false;
    log.info('Redis connection is back');
  });
}

/** How long a connection may take to say good-bye before it is cut. */
const QUIT_TIMEOUT_MS = 1_000;

/** Closes a connection for good; commands that still wait are refused. Never throws, never hangs (P22). */
export async function closeRedis(redis: Redis): Promise<void> {
  if (redis.status === 'ready') {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise((resolve) => (timer = setTimeout(resolve, QUIT_TIMEOUT_MS)));
    await Promise.race([redis.quit().catch(() => undefined), timeout]);
    clearTimeout(timer);
  }
  redis.disconnect();
}
