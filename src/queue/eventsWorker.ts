// Runs flush jobs: one at a time a run, many runs at once. It guards against a shipper that goes on with a lane that is
// no longer its own: the library only reports a lost lock (P12), so the flush's signal is aborted here, also by our own
// clock when renewals merely stay away.

import { Worker, type Job } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { z } from 'zod';
import { waitFor } from '../waiting/waiting.js';
import { queueBackend } from './queueBackend.js';
import { readStored } from './stored.js';

/** How a flush ended. */
export type FlushOutcome =
  /** The lane was empty when last looked at, or nothing can be done about it here. */
  | 'drained'
  /** There is more, but others wait: the run's job goes to the end of the queue. */
  | 'yield'
  /** It couldn't be shipped now: again after a back-off, the head of the lane kept. */
  | 'retry'
  /** The same, after a wait of the flush's own choosing. */
  | { readonly retryInMs: number };

export interface FlushContext {
  /** From 1; counts the tries of this job. */
  readonly attempt: number;
  /**
   * Aborted when the worker stops (reason {@link STOPPING}: end after the batch that is in flight), or when the lane
   * is no longer this flush's (any other reason: end at once).
   */
  readonly signal: AbortSignal;
  /** Whether other lanes wait for a shipper. */
  othersWaiting(): Promise<boolean>;
}

/** Ships one run's lane. A throw is logged and counts as `retry`. */
export type Flush = (runId: string, context: FlushContext) => Promise<FlushOutcome>;

export interface FlushWorkerOptions {
  /** Lanes that are shipped at the same time. */
  readonly concurrency: number;
  /** Lock of a flush job, renewed at half of it. @default 10_000 */
  readonly lockMs?: number;
}

interface Dependencies extends FlushWorkerOptions {
  readonly flush: Flush;
  readonly queueName: string;
  readonly prefix: string;
  readonly connection: Redis;
  /** Opens the connection for the library's blocking reads; closed with the worker. */
  readonly openBlocking: () => Redis;
  readonly again: (runId: string) => Promise<void>;
  readonly othersWaiting: () => Promise<boolean>;
  readonly log: Logger;
}

export const FLUSH_BACKOFF = 'flush';
/** Reason of a flush's signal when only its worker ends. */
export const STOPPING = 'stopping';
const BACKOFF_FIRST_MS = 500;
/** No wait of a flush is longer (design section 9). */
export const BACKOFF_CEILING_MS = 15_000;
// A job that a lost connection or a dead shipper holds keeps its lane waiting for so long: shorter than the library's.
const DEFAULT_LOCK_MS = 10_000;
/** A flush whose lock hasn't been renewed for this part of it counts as no longer owned. */
const HELD_PART = 0.8;
const STOP_TIMEOUT_MS = 10_000;
const IDLE_CLOSE_MS = 1_000;

const flushJob = z.object({ v: z.literal(1), runId: z.string() });

/** Thrown at the library, whose only word for "later again" it is; never reaches anybody else. */
class FlushLater extends Error {
  override readonly name = 'FlushLater';

  constructor(readonly inMs?: number) {
    super('The lane could not be shipped now.');
  }
}

/** The library's worker waits without end when Redis is away while it closes, and renews locks meanwhile (P22). */
class FlushWorker extends Worker {
  async abandon(): Promise<void> {
    await this.lockManager.close();
  }
}

export class EventsWorker {
  readonly #deps: Dependencies;
  readonly #held = new Map<string, { readonly abort: AbortController; lapses: NodeJS.Timeout }>();
  #worker: FlushWorker | undefined;
  #blocking: Redis | undefined;
  #stopped: Promise<void> | undefined;

  constructor(deps: Dependencies) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#worker !== undefined || this.#stopped !== undefined) return;
    const { queueName, prefix, connection, concurrency, log } = this.#deps;
    this.#blocking = this.#deps.openBlocking();
    const worker = new FlushWorker(
      queueName,
      (job) => this.#process(job),
      {
        connection,
        prefix,
        concurrency,
        lockDuration: this.#lockMs,
        // A dead shipper's lane has another within 1.5 x its lock (design section 12).
        stalledInterval: this.#lockMs / 4,
        maxStalledCount: Number.MAX_SAFE_INTEGER,
        runRetryDelay: 1_000,
        settings: { backoffStrategy: (failures, _type, error) => waitAfter(failures, error) },
      },
      queueBackend(prefix, connection, this.#blocking),
    );
    worker.on('error', (error) => log.debug({ reason: error.message }, 'events queue'));
    worker.on('locksRenewed', ({ jobIds }) => {
      for (const jobId of jobIds) this.#held.get(jobId)?.lapses.refresh();
    });
    worker.on('lockRenewalFailed', (jobIds) => {
      for (const jobId of jobIds) this.#held.get(jobId)?.abort.abort('lock_lost');
    });
    this.#worker = worker;
  }

  /**
   * Takes no more jobs, tells those that run to end, and waits for them.
   *
   * @param options `deadline`: on the clock of `performance.now()`, in 10 s when not given. A flush that goes on
   *   behind it has lost its lane: its lock lapses, and another worker takes the lane up.
   */
  async stop(options: { readonly deadline?: number } = {}): Promise<void> {
    this.#stopped ??= this.#stop(options.deadline ?? performance.now() + STOP_TIMEOUT_MS);
    await this.#stopped;
  }

  async #stop(deadline: number): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    for (const held of this.#held.values()) held.abort.abort(STOPPING);
    await worker.pause(true);
    const closing = worker.close().catch(() => undefined);
    // A flush is worth waiting for; a worker without one only takes its leave of Redis, which may be away.
    const left = this.#held.size === 0 ? IDLE_CLOSE_MS : Infinity;
    const closed = await waitFor(closing, { ms: Math.min(left, deadline - performance.now()) });
    if (closed.outcome === 'timed_out') await worker.abandon();
    this.#blocking?.disconnect();
  }

  get #lockMs(): number {
    return this.#deps.lockMs ?? DEFAULT_LOCK_MS;
  }

  async #process(job: Job): Promise<void> {
    const { runId } = readStored(flushJob, job.data, 'A flush job');
    const outcome = await this.#flush(job, runId);
    if (outcome === 'retry') throw new FlushLater();
    if (outcome === 'yield') await this.#deps.again(runId);
    if (typeof outcome === 'object') throw new FlushLater(outcome.retryInMs);
  }

  async #flush(job: Job, runId: string): Promise<FlushOutcome> {
    const abort = new AbortController();
    const lapses = setTimeout(() => abort.abort('lock_lapsing'), this.#lockMs * HELD_PART).unref();
    const jobId = job.id ?? '';
    this.#held.set(jobId, { abort, lapses });
    // Fetched while the worker was already told to stop.
    if (this.#stopped !== undefined) abort.abort(STOPPING);
    try {
      return await this.#deps.flush(runId, {
        attempt: job.attemptsMade + 1,
        signal: abort.signal,
        othersWaiting: this.#deps.othersWaiting,
      });
    } catch (error) {
      this.#deps.log.error({ err: error, runId }, 'a flush failed, trying again');
      return 'retry';
    } finally {
      clearTimeout(lapses);
      this.#held.delete(jobId);
    }
  }
}

/** Doubles from half a second to a ceiling of 15 s; the later half of it is jitter. */
export function flushBackoffMs(attemptsMade: number, random: () => number = Math.random): number {
  const ceiling = Math.min(BACKOFF_CEILING_MS, BACKOFF_FIRST_MS * 2 ** Math.min(attemptsMade - 1, 10));
  return Math.round(ceiling / 2 + (random() * ceiling) / 2);
}

function waitAfter(failures: number, error: Error | undefined): number {
  if (!(error instanceof FlushLater) || error.inMs === undefined) return flushBackoffMs(failures);
  return Math.round(Math.min(BACKOFF_CEILING_MS, Math.max(1, error.inMs)));
}
