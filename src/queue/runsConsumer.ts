// Takes claimed runs by hand, one when a slot is free: the library's own worker would overrun the slots. A blocking
// read on the queue's marker says that there may be something; the fetch itself never blocks, and carries the time at
// which it was sent, because that is when the lock may have begun (design section 5).
// A read that never returns (P1, P2) is given up by our own clock and its connection made anew. Jobs of dead holders
// are put back by the stalled check, which runs here in every consumer whether or not anything is taken (P17).

import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { Worker, type Job } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { linkSignals, pause, waitFor } from '../waiting/waiting.js';
import { queueBackend } from './queueBackend.js';
import { runJob, type RunJob } from './runJob.js';
import { readStored } from './stored.js';
import { complete, handBack, handBackLost } from './takenJob.js';

/** A run that this process has taken from the queue, under a lock of its own. */
export interface TakenRun {
  readonly job: RunJob;
  readonly jobId: string;
  /** Fresh for every take: nobody else can have it. */
  readonly lockToken: string;
  readonly queueName: string;
  /** `performance.now()` when the fetch was sent: the lock can't have begun earlier. */
  readonly fetchedAtMonoMs: number;
  /** Takes the job out of the queue; also answers `completed` when it is gone already. May be repeated. */
  complete(): Promise<'completed' | 'not_owner'>;
  /** Puts the job back at the front, so that another executor takes it at once; with a delay, at its end and later. */
  handBack(delayMs?: number): Promise<'handed_back' | 'not_owner'>;
}

export interface RunsConsumerOptions {
  readonly queueName: string;
  readonly prefix: string;
  /** Shared, for fetches and the stalled check. */
  readonly connection: Redis;
  /** Opens the connection for blocking reads; the consumer closes it. */
  readonly openBlocking: () => Redis;
  readonly log: Logger;
  /** L of design section 5. */
  readonly lockMs: number;
  /** L / 5 of design section 5. */
  readonly stalledCheckMs: number;
}

const BLOCK_MS = 5_000;
const SHORTEST_BLOCK_MS = 10;
/** What a blocking read may take beyond its time before its connection counts as dead. */
const BLOCK_GRACE_MS = 2_000;
const PAUSE_AFTER_ERROR_MS = 1_000;
/** How long a job waits that only a newer version can read. */
const UNREADABLE_DELAY_MS = 30_000;
const STOP_TIMEOUT_MS = 2_000;

export class RunsConsumer {
  readonly #options: RunsConsumerOptions;
  readonly #stopping = new AbortController();
  /** Fetches that were given up while on their way: what they bring goes back. */
  readonly #orphans = new Set<Promise<unknown>>();
  #worker: Worker | undefined;
  #blocking: Redis | undefined;
  #mayHaveMore = true;
  /** When the next job of a later time is due, as far as this consumer has read it; on the wall clock. */
  #dueAtMs = Infinity;
  /** How often the shared connection was lost: a fetch during which it rises may have taken more than it brings. */
  #connectionLosses = 0;
  readonly #countLoss = (): void => {
    this.#connectionLosses += 1;
  };
  #stopped: Promise<void> | undefined;

  constructor(options: RunsConsumerOptions) {
    this.#options = options;
  }

  /** Begins the stalled check; takes nothing by itself. */
  start(): void {
    if (this.#worker !== undefined || this.#stopping.signal.aborted) return;
    const { queueName, prefix, connection, lockMs, stalledCheckMs, log } = this.#options;
    const worker = new Worker(
      queueName,
      null,
      {
        connection,
        prefix,
        autorun: false,
        skipLockRenewal: true,
        lockDuration: lockMs,
        stalledInterval: stalledCheckMs,
        // How often a run may stall is the executor's to count, never the queue's.
        maxStalledCount: Number.MAX_SAFE_INTEGER,
      },
      // Without a blocking connection: ours is made anew when it hangs.
      queueBackend(prefix, connection),
    );
    worker.on('error', (error) => log.debug({ reason: error.message }, 'runs queue'));
    worker.on('stalled', (jobId) => log.warn({ jobId }, 'the holder of a run is gone, the run waits again'));
    worker
      .startStalledCheckTimer()
      .catch((error: unknown) => log.error({ err: error }, 'stalled check did not start'));
    connection.on('close', this.#countLoss);
    this.#worker = worker;
  }

  /**
   * Takes the next run, or null when there is none now: after a blocking wait of at most 5 s, at once when `signal` is
   * aborted. Errors of Redis are logged, paced and come as null. One call at a time.
   */
  async take(signal: AbortSignal): Promise<TakenRun | null> {
    const worker = this.#worker;
    if (worker === undefined) throw new Error('A consumer must be started before it can take.');
    const { signal: ended, unlink } = linkSignals(signal, this.#stopping.signal);
    try {
      if (ended.aborted) return null;
      if (!this.#mayHaveMore) await this.#waitForMarker(worker, ended);
      if (isAborted(ended)) return null;
      return await this.#fetch(worker, ended);
    } catch (error) {
      // Redis refuses to write (MISCONF, OOM, READONLY): wait, drop nothing (P8).
      this.#options.log.warn(
        { reason: error instanceof Error ? error.message : 'unknown' },
        'no run could be taken, trying again',
      );
      await pause(PAUSE_AFTER_ERROR_MS, ended);
      return null;
    } finally {
      unlink();
    }
  }

  /** Ends waiting takes and the stalled check; jobs that were taken stay their takers'. */
  async stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    await this.#stopped;
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    await waitFor(Promise.allSettled(this.#orphans), { ms: STOP_TIMEOUT_MS });
    this.#dropBlocking();
    this.#options.connection.off('close', this.#countLoss);
    const closing = this.#worker?.close(true).catch(() => undefined);
    if (closing !== undefined) await waitFor(closing, { ms: STOP_TIMEOUT_MS });
  }

  async #fetch(worker: Worker, ended: AbortSignal): Promise<TakenRun | null> {
    const lockToken = randomUUID();
    const sentAt = performance.now();
    const fetching = this.#fetchJob(worker, lockToken);
    const fetched = await waitFor(fetching, { signal: ended });
    if (fetched.outcome !== 'settled') {
      this.#giveBackLater(fetching, lockToken);
      return null;
    }
    const job = fetched.value;
    this.#mayHaveMore = job !== undefined;
    if (job?.id === undefined) return null;
    if (performance.now() - sentAt > this.#options.lockMs / 2) {
      // It waited for Redis to return. By our count half of the lock is gone: a fresh fetch starts better.
      await handBack(job, lockToken);
      return null;
    }
    return this.#taken(job, job.id, lockToken, sentAt);
  }

  async #fetchJob(worker: Worker, lockToken: string): Promise<Job | undefined> {
    const { connection, log } = this.#options;
    const losses = this.#connectionLosses;
    // The library's type promises a job; it answers undefined when there is none.
    const fetching: Promise<Job | undefined> = worker.getNextJob(lockToken, { block: false });
    const job = await fetching;
    if (this.#connectionLosses !== losses) {
      // What can't be given back waits for its lock; the job that the fetch did bring must not wait with it.
      const lost = await handBackLost(worker, connection, lockToken, job?.id).catch(() => 0);
      if (lost > 0) log.info({ runs: lost }, 'runs whose fetch was answered to a lost connection wait again');
    }
    return job;
  }

  async #taken(
    job: Job,
    jobId: string,
    lockToken: string,
    fetchedAtMonoMs: number,
  ): Promise<TakenRun | null> {
    const { queueName, log } = this.#options;
    let data: RunJob;
    try {
      data = readStored(runJob, job.data, `The job ${jobId}`);
    } catch (error) {
      log.error({ err: error, jobId }, 'a job that this version cannot read waits for a newer executor');
      await handBack(job, lockToken, UNREADABLE_DELAY_MS);
      return null;
    }
    return {
      job: data,
      jobId,
      lockToken,
      queueName,
      fetchedAtMonoMs,
      complete: () => complete(job, lockToken),
      handBack: (delayMs) => handBack(job, lockToken, delayMs),
    };
  }

  #giveBackLater(fetching: Promise<Job | undefined>, lockToken: string): void {
    const orphan = fetching
      .then(async (job) => {
        if (job !== undefined) await handBack(job, lockToken);
      })
      // The lock lapses then, and the stalled check puts the run back.
      .catch(() => undefined)
      .finally(() => this.#orphans.delete(orphan));
    this.#orphans.add(orphan);
  }

  // The marker only wakes up: whether it was there or not, a fetch follows. One that stands for a job of a later time
  // says when, and is gone with this read: whoever read it waits no longer than until then.
  async #waitForMarker(worker: Worker, ended: AbortSignal): Promise<void> {
    const { log } = this.#options;
    const client = (this.#blocking ??= this.#options.openBlocking());
    try {
      const waitMs = Math.min(BLOCK_MS, Math.max(SHORTEST_BLOCK_MS, this.#dueAtMs - Date.now()));
      const popping = client.bzpopmin(worker.toKey('marker'), waitMs / 1_000);
      const read = await waitFor(popping, { signal: ended, ms: BLOCK_MS + BLOCK_GRACE_MS });
      if (read.outcome === 'settled') {
        const dueAtMs = Number(read.value?.[2] ?? 0);
        this.#dueAtMs = dueAtMs > Date.now() ? dueAtMs : Infinity;
        return;
      }
      // An abandoned read would swallow the next marker, or never return.
      this.#dropBlocking();
      if (read.outcome === 'timed_out')
        log.warn('a blocking read did not return, its connection is made anew');
    } catch (error) {
      this.#dropBlocking();
      throw error;
    } finally {
      this.#mayHaveMore = true;
    }
  }

  #dropBlocking(): void {
    this.#blocking?.disconnect();
    this.#blocking = undefined;
  }
}

// Read through a function: the checker takes a first look at the flag as lasting.
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
