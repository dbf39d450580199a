// Ships lanes to the control plane: a worker on the events queue, one lane a job. At most one shipper holds a lane, so
// the rows of a run arrive in their order; many lanes go at once, so that a slow one holds up no other (P50). Its end
// guards what is still in the lanes: it ships until they are empty or its time is over (P21, P25).

import { setMaxListeners } from 'node:events';
import type { Logger } from 'pino';
import type { PlatformHttp } from '../platform/http.js';
import { STOPPING } from '../queue/eventsQueue.js';
import type { EventsWorker, Fleet, FlushContext, FlushOutcome } from '../queue/fleet.js';
import { LONGEST_TIMER_MS, pause, waitFor } from '../waiting/waiting.js';
import { BackOff } from './backOff.js';
import { LanePass, type PassLimits, type ShipperCounts } from './lanePass.js';
import { Sweep } from './sweep.js';

export type { ShipperCounts } from './lanePass.js';

export interface ShipperOptions {
  readonly fleet: Fleet;
  readonly http: PlatformHttp;
  readonly log: Logger;
  /** Lanes that are shipped at a time. Default 32. */
  readonly concurrency?: number;
  /** For the jitter of back-offs and sweeps. Default `Math.random`. */
  readonly random?: () => number;
  /** Rows of one batch. Default 1,000. */
  readonly maxRows?: number;
  /** Of one encoded batch. Default 4.5 MiB: servers take 5. */
  readonly maxBodyBytes?: number;
  /** After so many batches a lane lets others go first. Default 32. */
  readonly turnBatches?: number;
  /** After so long a lane lets others go first. Default 250 ms. */
  readonly turnMs?: number;
  /** Lock of a flush job: within 1.5 of it a dead shipper's lane has another. Default 10 s. */
  readonly lockMs?: number;
  /** How long the run's token must be refused before the lane is parked. Default 30 s. */
  readonly refusalMs?: number;
  /** Between sweeps for forgotten lanes. Default 2 s. */
  readonly sweepMs?: number;
}

const CONCURRENCY = 32;
const LIMITS: PassLimits = {
  maxRows: 1_000,
  maxBodyBytes: 4.5 * 1024 * 1024,
  turnBatches: 32,
  turnMs: 250,
};

/** While ending, how often the lanes are looked at. */
const LOOK_MS = 100;
/** How long an end waits for Redis to be looked at: when it is away, the lanes are safe in it, and not ours to ship. */
const REDIS_PATIENCE_MS = 15_000;
/** Lanes that the end of a shipper looks after. */
const LANES_LOOKED_AT = 10_000;
/** A call in flight ends within its own timeout of 30 s, if it may. */
const IN_FLIGHT_MS = 35_000;
/** For a flush that was cut to give its job back. */
const CUT_MS = 2_000;

export class Shipper {
  readonly #options: ShipperOptions;
  readonly #limits: PassLimits;
  readonly #log: Logger;
  readonly #backOff: BackOff;
  readonly #sweep: Sweep;
  readonly #counts: ShipperCounts = { rowsShipped: 0, runsFinished: 0, rowsSetAside: 0, lanesParked: 0 };
  readonly #cut = new AbortController();
  #worker: EventsWorker | undefined;
  #deadline = Infinity;
  #deadlineTimer: NodeJS.Timeout | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: ShipperOptions) {
    const { fleet, log, random, refusalMs, sweepMs } = options;
    this.#options = options;
    this.#limits = {
      maxRows: options.maxRows ?? LIMITS.maxRows,
      maxBodyBytes: options.maxBodyBytes ?? LIMITS.maxBodyBytes,
      turnBatches: options.turnBatches ?? LIMITS.turnBatches,
      turnMs: options.turnMs ?? LIMITS.turnMs,
    };
    this.#log = log;
    this.#backOff = new BackOff({
      wake: () => fleet.flushes.wakeDelayed(),
      log,
      random,
      refusalMs,
    });
    this.#sweep = new Sweep({ lanes: fleet.lanes, flushes: fleet.flushes, log, random, everyMs: sweepMs });
    // Every flush under way listens to it, and takes its listener away again.
    setMaxListeners(0, this.#cut.signal);
  }

  /** Since the start of this shipper. */
  get counts(): Readonly<ShipperCounts> {
    return { ...this.#counts };
  }

  start(): void {
    if (this.#worker !== undefined || this.#stopping !== undefined) return;
    const { fleet, concurrency = CONCURRENCY, lockMs } = this.#options;
    this.#worker = fleet.flushes.worker((runId, context) => this.#flush(runId, context), {
      concurrency,
      ...(lockMs === undefined ? {} : { lockMs }),
    });
    this.#worker.start();
    this.#sweep.start();
    this.#log.info({ concurrency }, 'shipper ready');
  }

  /**
   * Ships what is in the fleet's lanes at this moment, finishes the batches in flight, and ends; at the deadline
   * whatever is left goes to other shippers. A second call may bring the deadline forward.
   *
   * @param options `deadline`: on the clock of `performance.now()`; `Infinity` = however long it takes.
   */
  stop(options: { readonly deadline: number }): Promise<void> {
    this.#deadline = Math.min(this.#deadline, options.deadline);
    this.#stopping ??= this.#stop();
    this.#watchDeadline();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    const left = await this.#shipWhatIsThere();
    this.#sweep.stop();
    const now = performance.now();
    await worker.stop({ deadline: Math.max(now, Math.min(this.#deadline, now + IN_FLIGHT_MS)) + CUT_MS });
    this.#cut.abort();
    clearTimeout(this.#deadlineTimer);
    if (left > 0) this.#log.warn({ lanes: left }, 'shipper stopped; lanes are left to other shippers');
    this.#log.info(this.counts, 'shipper stopped');
  }

  /** At the deadline calls in flight are broken off: their lanes go to other shippers without a lock to wait for. */
  #watchDeadline(): void {
    clearTimeout(this.#deadlineTimer);
    if (this.#deadline === Infinity || this.#cut.signal.aborted) return;
    const leftMs = Math.min(LONGEST_TIMER_MS, this.#deadline - performance.now());
    if (leftMs <= 0) this.#cut.abort();
    else this.#deadlineTimer = setTimeout(() => this.#watchDeadline(), leftMs).unref();
  }

  /** @returns how many of the lanes that had entries at first still have some of them. */
  async #shipWhatIsThere(): Promise<number> {
    if (performance.now() >= this.#deadline) return 0;
    const { fleet } = this.#options;
    const signal = this.#cut.signal;
    let left: ReadonlySet<string> | undefined;
    do {
      try {
        const looking = { signal, ms: REDIS_PATIENCE_MS };
        if (left === undefined) void fleet.flushes.wakeDelayed().catch(() => undefined);
        const now = await waitFor(fleet.lanes.unshipped(LANES_LOOKED_AT), looking);
        if (now.outcome === 'timed_out')
          this.#log.warn('Redis does not answer; what is in the lanes is left to other shippers');
        if (now.outcome !== 'settled') break;
        if (left === undefined) this.#log.info({ lanes: now.value.length }, 'shipper is stopping');
        // A lane that was seen empty once has shipped what was in it.
        left = new Set(now.value.filter((runId) => left === undefined || left.has(runId)));
      } catch (error) {
        this.#log.warn(
          { reason: error instanceof Error ? error.message : String(error) },
          'lanes could not be looked at; trying again',
        );
      }
    } while (left?.size !== 0 && (await pause(LOOK_MS, signal)));
    return left?.size ?? 0;
  }

  async #flush(runId: string, context: FlushContext): Promise<FlushOutcome> {
    const { fleet, http } = this.#options;
    const cut = new AbortController();
    const onDeadline = (): void => cut.abort();
    // A worker that stops lets the batch in flight come to its end; a lane that is another's is left at once (P12).
    const onSignal = (): void => {
      if (context.signal.reason !== STOPPING) cut.abort();
    };
    this.#cut.signal.addEventListener('abort', onDeadline, { once: true });
    context.signal.addEventListener('abort', onSignal, { once: true });
    if (this.#cut.signal.aborted) onDeadline();
    if (context.signal.aborted) onSignal();
    const [log, backOff, limits, counts] = [this.#log, this.#backOff, this.#limits, this.#counts];
    try {
      return await new LanePass(
        { fleet, http, log, backOff, limits, counts },
        runId,
        context,
        cut.signal,
      ).run();
    } finally {
      this.#cut.signal.removeEventListener('abort', onDeadline);
      context.signal.removeEventListener('abort', onSignal);
    }
  }
}
