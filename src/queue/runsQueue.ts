// The queue of claimed runs, one BullMQ queue a pool. Its jobs are small and its order is all it decides: BullMQ never
// retries, fails or keeps a run. A job's id comes from the lease, so that a resent add makes no second job and a second
// claim of the same run no vanishing one.

import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { FleetKeys } from './keys.js';
import { JOB_NAME, runJob, type RunJob } from './runJob.js';
import { RunsConsumer } from './runsConsumer.js';

export type { RunJob } from './runJob.js';
export { RunsConsumer, type TakenRun } from './runsConsumer.js';

/** Nobody reads the queue's own event stream; it need not be long. */
const KEPT_QUEUE_EVENTS = 100;

export class RunsQueue {
  readonly #keys: FleetKeys;
  readonly #connection: Redis;
  readonly #openBlocking: (name: string) => Redis;
  readonly #log: Logger;
  readonly #queues = new Map<string, Queue>();
  readonly #consumers = new Set<RunsConsumer>();

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
    this.#log = deps.log;
  }

  /** Puts a claim into its pool's queue; repeated, it changes nothing. */
  async add(job: RunJob): Promise<void> {
    await this.#queue(job.pool).add(JOB_NAME, runJob.parse(job), {
      jobId: this.#keys.runJobId(job.leaseId),
      removeOnComplete: true,
      removeOnFail: true,
    });
  }

  /** How many claims wait, are taken, or wait for a time. */
  async depth(
    pool: string,
  ): Promise<{ readonly waiting: number; readonly active: number; readonly delayed: number }> {
    const counts = await this.#queue(pool).getJobCounts('wait', 'prioritized', 'active', 'delayed');
    const count = (state: string): number => counts[state] ?? 0;
    return {
      waiting: count('wait') + count('prioritized'),
      active: count('active'),
      delayed: count('delayed'),
    };
  }

  /** A consumer of one pool's queue; not started. */
  consumer(pool: string, timing: { readonly lockMs: number; readonly stalledCheckMs: number }): RunsConsumer {
    const queueName = this.#keys.runsQueue(pool);
    const consumer = new RunsConsumer({
      ...timing,
      queueName,
      prefix: this.#keys.prefix,
      connection: this.#connection,
      openBlocking: () => this.#openBlocking(`take:${queueName}`),
      log: this.#log.child({ queue: queueName }),
    });
    this.#consumers.add(consumer);
    return consumer;
  }

  /** Stops consumers that still run and lets go of the queues; their shared connection stays. */
  async close(): Promise<void> {
    await Promise.all([...this.#consumers].map((consumer) => consumer.stop()));
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    this.#queues.clear();
  }

  #queue(pool: string): Queue {
    const known = this.#queues.get(pool);
    if (known !== undefined) return known;
    const queue = new Queue(this.#keys.runsQueue(pool), {
      connection: this.#connection,
      prefix: this.#keys.prefix,
      streams: { events: { maxLen: KEPT_QUEUE_EVENTS } },
    });
    queue.on('error', (error) => this.#log.debug({ reason: error.message }, 'runs queue'));
    this.#queues.set(pool, queue);
    return queue;
  }
}
