// What executors say about themselves, for whoever counts free slots or looks who is there. A record ends by its time
// to live: an executor that died says nothing, and nobody has to notice first.

import type { Redis } from 'ioredis';
import { z } from 'zod';
import { RecordError } from './errors.js';
import type { FleetKeys } from './keys.js';
import { parseStored } from './stored.js';

const executorRecord = z.object({
  id: z.string(),
  host: z.string(),
  /** Tells a host before a reboot from the same after it; null where the system has none. */
  bootId: z.string().nullable(),
  pool: z.string(),
  labels: z.array(z.string()),
  slots: z.int(),
  busy: z.int(),
  version: z.string(),
  state: z.enum(['ready', 'draining', 'unhealthy']),
  /** Kind of its sandboxes. */
  sandbox: z.string(),
  startedAtMs: z.number(),
  /** When it wrote this, by its own clock. */
  atMs: z.number(),
});

export type ExecutorRecord = Readonly<z.infer<typeof executorRecord>>;

/** Three beats of 5 s. */
const DEFAULT_TTL_MS = 15_000;

export class Executors {
  readonly #redis: Redis;
  readonly #keys: FleetKeys;

  constructor(redis: Redis, keys: FleetKeys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** Says it again for `ttlMs`. */
  async put(record: ExecutorRecord, ttlMs: number = DEFAULT_TTL_MS): Promise<void> {
    await this.#redis
      .multi()
      .set(this.#keys.executor(record.id), JSON.stringify(executorRecord.parse(record)), 'PX', ttlMs)
      .sadd(this.#keys.executors, record.id)
      .exec();
  }

  async remove(id: string): Promise<void> {
    await this.#redis.multi().del(this.#keys.executor(id)).srem(this.#keys.executors, id).exec();
  }

  /** All that have spoken lately, whatever their state; ordered by id. One that a newer version wrote is left out. */
  async live(pool?: string): Promise<readonly ExecutorRecord[]> {
    const ids = (await this.#redis.smembers(this.#keys.executors)).sort();
    if (ids.length === 0) return [];
    const texts = await this.#redis.mget(ids.map((id) => this.#keys.executor(id)));
    const silent = ids.filter((_, index) => texts[index] === null);
    // One that speaks again at this very moment is back with its next beat.
    if (silent.length > 0) await this.#redis.srem(this.#keys.executors, ...silent);
    return texts
      .flatMap((text) => readRecord(text))
      .filter((record) => pool === undefined || record.pool === pool);
  }
}

// While a fleet is upgraded, one executor of the next version must not stop everybody from counting the others.
function readRecord(text: string | null): readonly ExecutorRecord[] {
  if (text === null) return [];
  try {
    return [parseStored(executorRecord, text, 'The record of an executor')];
  } catch (error) {
    if (error instanceof RecordError) return [];
    throw error;
  }
}
