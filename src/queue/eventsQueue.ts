// The queue of flush jobs: one job says that a run's lane wants shipping. Deduplication by run with `keepLastIfActive`
// keeps at most one active and one waiting job a run, so at most one shipper holds a lane and none is forgotten: an add
// while a job waits or backs off is that job, an add while it is active becomes the next one.
// A job backs off without end and under a ceiling of ours; the built-in back-off grows without bound.

import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { EventsWorker, FLUSH_BACKOFF, type Flush, type FlushWorkerOptions } from './eventsWorker.js';
import type { FleetKeys } from './keys.js';

export {
  BACKOFF_CEILING_MS,
  EventsWorker,
  STOPPING,
  flushBackoffMs,
  type Flush,
  type FlushContext,
  type FlushOutcome,
} from './eventsWorker.js';

/** The library must have a number; at half a second a try this one is longer than any fleet lives. */
const ENDLESS_TRIES = 1_000_000_000;
/** Nobody reads the queue's own event stream; it need not be long. */
const KEPT_QUEUE_EVENTS = 100;

export class EventsQueue {
  readonly #keys: FleetKeys;
  readonly #connection: Redis;
  readonly #openBlocking: (name: string) => Redis;
  readonly #log: Logger;
  readonly #workers = new Set<EventsWorker>();
  #queue: Queue | undefined;

  /** @param deps `connection` is shared and outlives the queue. */
  constructor(deps: {
    readonly keys: FleetKeys;
    readonly connection: Redis;
    readonly openBlocking: (name: string) => Redis;
    readonly log: Logger;
  }) {
    this.#keys = deps.keys;
    this.#connection = deps.connection;
    this.#openBlocking = deps.openBlocking;
    this.#log = deps.log.child({ queue: deps.keys.eventsQueue });
  }

  /** Makes sure that the run's lane will be flushed after this moment. May be repeated. */
  async add(runId: string): Promise<void> {
    await this.#opened().add(
      'flush',
      { v: 1, runId },
      {
        deduplication: { id: runId, keepLastIfActive: true },
        attempts: ENDLESS_TRIES,
        backoff: { type: FLUSH_BACKOFF },
        // The library keeps every stack of every try otherwise (P7).
        stackTraceLimit: 1,
        removeOnComplete: true,
        removeOnFail: true,
      },
    );
  }

  /** A worker that flushes lanes; not started. */
  worker(flush: Flush, options: FlushWorkerOptions): EventsWorker {
    const worker = new EventsWorker({
      ...options,
      flush,
      queueName: this.#keys.eventsQueue,
      prefix: this.#keys.prefix,
      connection: this.#connection,
      openBlocking: () => this.#openBlocking(`take:${this.#keys.eventsQueue}`),
      again: (runId) => this.add(runId),
      othersWaiting: async () => (await this.#opened().getJobCountByTypes('wait', 'prioritized')) > 0,
      log: this.#log,
    });
    this.#workers.add(worker);
    return worker;
  }

  /** Ends the back-off of all jobs: the control plane has answered again. */
  async wakeDelayed(): Promise<void> {
    await this.#opened().promoteJobs();
  }

  async counts(): Promise<{ readonly waiting: number; readonly active: number; readonly delayed: number }> {
    const counts = await this.#opened().getJobCounts('wait', 'prioritized', 'active', 'delayed');
    const count = (state: string): number => counts[state] ?? 0;
    return {
      waiting: count('wait') + count('prioritized'),
      active: count('active'),
      delayed: count('delayed'),
    };
  }

  /** Stops workers that still run and lets go of the queue; the shared connection stays. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    const queue = this.#queue;
    this.#queue = undefined;
    await queue?.close();
  }

  #opened(): Queue {
    if (this.#queue !== undefined) return this.#queue;
    const queue = new Queue(this.#keys.eventsQueue, {
      connection: this.#connection,
      prefix: this.#keys.prefix,
      streams: { events: { maxLen: KEPT_QUEUE_EVENTS } },
    });
    queue.on('error', (error) => this.#log.debug({ reason: error.message }, 'events queue'));
    this.#queue = queue;
    return queue;
  }
}
