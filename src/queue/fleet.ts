// What every other folder gets: one fleet's part of Redis, opened, checked and ready to use. Whoever opens it closes
// it, and then no connection is left that could keep the process alive (P21, P22).

import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { Credentials } from './credentials.js';
import { EventsQueue } from './eventsQueue.js';
import { Executors } from './executors.js';
import { checkFleetKey } from './keyCheck.js';
import { FleetKeys } from './keys.js';
import { Lanes } from './lane.js';
import { checkRedis, closeRedis, openRedis, type RedisSettings, type RedisUse } from './redis.js';
import { RunsQueue } from './runsQueue.js';
import { RunStates } from './runState.js';
import { defineScripts } from './scripts.js';
import { Sealer, type FleetKey } from './seal.js';

export type { IdentityRecord, RunCredential } from './credentials.js';
export type { EventsQueue, EventsWorker, Flush, FlushContext, FlushOutcome } from './eventsQueue.js';
export type { ExecutorRecord, Executors } from './executors.js';
export type { AppendOutcome, FinalizeOutcome, LaneEntry, LaneRow, Lanes } from './lane.js';
export type { RedisSettings } from './redis.js';
export type { RunJob, RunsConsumer, RunsQueue, TakenRun } from './runsQueue.js';
export type {
  AttemptRecord,
  RenewOutcome,
  RunPhase,
  RunRecord,
  RunStates,
  StartOutcome,
} from './runState.js';
export type { FleetKey } from './seal.js';

export interface Fleet {
  readonly name: string;
  /** For commands; shared. Commands wait while Redis is away: whoever can't wait bounds them. */
  readonly redis: Redis;
  readonly keys: FleetKeys;
  readonly log: Logger;
  readonly credentials: Credentials;
  readonly runStates: RunStates;
  readonly lanes: Lanes;
  readonly executors: Executors;
  readonly runs: RunsQueue;
  readonly flushes: EventsQueue;
  /** Closes everything; safe to call twice. */
  close(): Promise<void>;
}

/**
 * Opens a fleet's part of Redis and checks that Redis is fit for it; warnings go to the log.
 *
 * @param options `keys`: the first seals, all open.
 * @throws OperatorError `REDIS_…`, `FLEET_NAME_INVALID`, `FLEET_KEY_INVALID`, `FLEET_KEY_FOREIGN`
 */
export async function openFleet(options: {
  readonly name: string;
  readonly redis: RedisSettings;
  readonly keys: readonly FleetKey[];
  readonly log: Logger;
}): Promise<Fleet> {
  const keys = new FleetKeys(options.name);
  const sealer = new Sealer(options.keys);
  const log = options.log;
  const connections = new Set<Redis>();
  const open = (use: RedisUse, name: string): Redis => {
    const redis = openRedis(options.redis, { use, name, log });
    connections.add(redis);
    return redis.once('end', () => connections.delete(redis));
  };
  const closeConnections = async (): Promise<void> => {
    await Promise.all([...connections].map(closeRedis));
  };

  const redis = open('commands', 'commands');
  try {
    for (const warning of await checkRedis(redis)) log.warn(warning);
    await checkFleetKey(redis, keys, sealer);
  } catch (error) {
    await closeConnections();
    throw error;
  }
  defineScripts(redis);
  const connection = open('bullmq', 'queues');
  const openBlocking = (name: string): Redis => openRedis(options.redis, { use: 'blocking', name, log });
  const runs = new RunsQueue({ keys, connection, openBlocking, log });
  const flushes = new EventsQueue({ keys, connection, openBlocking, log });
  let closed: Promise<void> | undefined;

  return {
    name: options.name,
    redis,
    keys,
    log,
    credentials: new Credentials(redis, keys, sealer),
    runStates: new RunStates(redis, keys, sealer),
    lanes: new Lanes(redis, keys, sealer),
    executors: new Executors(redis, keys),
    runs,
    flushes,
    close: () => (closed ??= Promise.allSettled([runs.close(), flushes.close()]).then(closeConnections)),
  };
}
