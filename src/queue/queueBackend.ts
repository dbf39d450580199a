// What the queue library's workers stand on: connections of our own making only. Left alone it copies the shared one for
// its blocking reads and keeps the copy where nobody can reach it, so that a worker can't be closed while Redis is away
// (P22). Without a blocking connection a worker has none: then its taker waits by itself.

import { QueueKeys, RedisConnection, RedisQueueBackend, type BackendFactory } from 'bullmq';
import type { Redis } from 'ioredis';

/** @param blocking is closed with the worker; the worker's `connection` is shared and stays. */
export function queueBackend(
  prefix: string,
  connection: Redis,
  blocking?: Redis,
): BackendFactory<RedisQueueBackend> {
  return (name, options) => {
    const keys = new QueueKeys(prefix);
    return new RedisQueueBackend(
      new RedisConnection(connection, { shared: true, blocking: false }),
      name,
      keys.getKeys(name),
      (type) => keys.toKey(name, type),
      options,
      blocking === undefined ? undefined : new RedisConnection(blocking, { shared: false, blocking: true }),
    );
  };
}
