// Beats the assignment lease of every claim that this process made, until the run is done, given up or lost. Guards
// against beats that end before the work they cover (P26), a lease whose length is ignored (R22) and timers of
// finished work (P28): one timer serves all leases. The keeper that outlives its process comes later.
import { setMaxListeners } from 'node:events';
import type { Logger } from 'pino';
import type { Random } from '../platform/backoff.js';
import type { HeartbeatOutcome, PoolClient } from '../platform/poolClient.js';
import type { RunStates } from '../queue/runState.js';
import { pause, waitFor } from '../waiting/waiting.js';
import { beatInterval, grantedMs } from './beatTiming.js';
import { type ClaimedLease, type KeptLease, KeptLeases } from './keptLeases.js';
import { type Standing, standingsOf } from './standing.js';

export interface LeaseBeatOptions {
  readonly runStates: Pick<RunStates, 'claimPhases' | 'markLeaseLost' | 'requestCancel'>;
  readonly poolClient: Pick<PoolClient, 'heartbeat'>;
  readonly log: Logger;
  /** A heartbeat was answered with `drain`. May be called more than once. */
  readonly onDrain: () => void;
  readonly random?: Random | undefined;
}

export interface StopOptions {
  /** On the clock of `performance.now()`; `Infinity` = however long it takes. */
  readonly deadline: number;
}

/** Bounds the load of a thousand leases that fall due together. */
const PARALLEL_BEATS = 64;

/** A heartbeat is not worth waiting for longer than this, nor longer than until the next one. */
const BEAT_TIMEOUT_MS = 30_000;
const LEAST_BEAT_TIMEOUT_MS = 2_000;

/** Redis may be away; a beat doesn't wait for it, but says what it said before. */
const STANDING_WAIT_MS = 2_000;

/** Until something that Redis could not be told is tried again. */
const RECORD_AGAIN_MS = 1_000;

/** While stopping, how often the ends of runs are looked for. */
const STOP_LOOK_MS = 250;

/** Spreads leases that were claimed together, as a share of the interval. */
const BEAT_JITTER = 0.1;

export class LeaseBeat {
  readonly #options: LeaseBeatOptions;
  readonly #random: Random;
  readonly #leases = new KeptLeases();
  readonly #turns = new Set<Promise<void>>();
  readonly #ended = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #inFlight = 0;
  #started = false;
  #beatsFail = false;
  #deadline = Infinity;
  #stopping: Promise<void> | undefined;

  constructor(options: LeaseBeatOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    // Every beat under way listens to it, and each takes its listener away again.
    setMaxListeners(2 * PARALLEL_BEATS, this.#ended.signal);
  }

  /** Leases that are beaten at the moment. */
  get size(): number {
    return this.#leases.size;
  }

  start(): void {
    this.#started = true;
    this.#arm();
  }

  /** Takes a lease on; does nothing once stopped. */
  keep(lease: ClaimedLease): void {
    if (this.#ended.signal.aborted) return;
    this.#leases.add(lease, (lengthMs) => this.#spread(beatInterval(lengthMs, lengthMs)));
    this.#arm();
  }

  /**
   * Goes on until every kept run is done, or the deadline has passed; then nothing is beaten any more. A second call
   * may bring the deadline forward.
   */
  stop({ deadline }: StopOptions): Promise<void> {
    this.#deadline = Math.min(this.#deadline, deadline);
    this.#stopping ??= this.#drain();
    return this.#stopping;
  }

  async #drain(): Promise<void> {
    while (this.#started && this.#leases.size > 0 && performance.now() < this.#deadline) {
      await this.#dropOver();
      if (this.#leases.size > 0)
        await pause(Math.min(STOP_LOOK_MS, Math.max(0, this.#deadline - performance.now())));
    }
    if (this.#leases.size > 0) {
      const runs = this.#leases
        .all()
        .map((lease) => lease.runId)
        .slice(0, 20);
      this.#options.log.warn(
        { leases: this.#leases.size, runs },
        'runs are not done; their leases are beaten no more',
      );
    }
    this.#ended.abort();
    clearTimeout(this.#timer);
    this.#leases.clear();
    await Promise.all(this.#turns);
  }

  async #dropOver(): Promise<void> {
    const leases = this.#leases.all();
    const standings = await this.#standings(leases);
    for (const lease of leases) {
      if (standings.get(lease.leaseId) === 'over') this.#leases.drop(lease);
    }
  }

  /** One timer, set to the lease that is due first. */
  #arm(): void {
    clearTimeout(this.#timer);
    if (!this.#started || this.#ended.signal.aborted || this.#inFlight >= PARALLEL_BEATS) return;
    const next = this.#leases.nextDueAt();
    if (next === Infinity) return;
    this.#timer = setTimeout(() => this.#takeDue(), Math.max(0, next - performance.now()));
    this.#timer.unref();
  }

  #takeDue(): void {
    const due = this.#leases.takeDue(PARALLEL_BEATS - this.#inFlight);
    if (due.length > 0) {
      const turn = this.#serve(due).finally(() => this.#turns.delete(turn));
      this.#turns.add(turn);
    }
    this.#arm();
  }

  async #serve(due: readonly KeptLease[]): Promise<void> {
    this.#inFlight += due.length;
    const standings = await this.#standings(due);
    await Promise.all(
      due.map(async (lease) => {
        try {
          const delayMs = await this.#serveOne(lease, standings.get(lease.leaseId));
          lease.dueAt = performance.now() + this.#spread(delayMs);
        } catch (error) {
          this.#options.log.error({ err: error, runId: lease.runId }, 'a beat went wrong, it is tried again');
          lease.dueAt = performance.now() + RECORD_AGAIN_MS;
        } finally {
          this.#inFlight -= 1;
          this.#arm();
        }
      }),
    );
  }

  /** @returns milliseconds until the lease's next turn, if it is still kept */
  async #serveOne(lease: KeptLease, standing: Standing | undefined): Promise<number> {
    if (standing === 'over') {
      this.#leases.drop(lease);
      return 0;
    }
    lease.phase = standing ?? lease.phase;
    if (lease.lost) return this.#settleLost(lease, standing);
    const sentAt = performance.now();
    const answer = await this.#options.poolClient.heartbeat({
      leaseId: lease.leaseId,
      runId: lease.runId,
      phase: lease.phase,
      timeoutMs: Math.min(BEAT_TIMEOUT_MS, Math.max(LEAST_BEAT_TIMEOUT_MS, lease.lengthMs / 3)),
      signal: this.#ended.signal,
    });
    switch (answer.outcome) {
      case 'renewed':
        return this.#renewed(lease, answer, sentAt);
      case 'lost': {
        lease.lost = true;
        // The run may have moved to its finish while the beat was under way.
        const standings = await this.#standings([lease]);
        return this.#settleLost(lease, standings.get(lease.leaseId));
      }
      case 'failed':
        if (this.#ended.signal.aborted) return 0;
        if (!this.#beatsFail) this.#options.log.warn({ err: answer.error }, 'lease not beaten; trying again');
        this.#beatsFail = true;
        return beatInterval(lease.expiresAt - performance.now(), lease.lengthMs);
    }
  }

  #renewed(lease: KeptLease, answer: HeartbeatOutcome & { outcome: 'renewed' }, sentAt: number): number {
    const { runStates, log, onDrain } = this.#options;
    if (this.#beatsFail) log.info('leases are beaten again');
    this.#beatsFail = false;
    lease.lengthMs = grantedMs(answer.leaseExpiresAtMs, answer.serverDateMs, Date.now());
    lease.expiresAt = sentAt + lease.lengthMs;
    if (answer.action === 'drain') onDrain();
    if (answer.action === 'cancel') {
      // Every further beat of a run that is being cancelled says so again: this one need not wait for Redis.
      runStates.requestCancel(lease.runId, lease.leaseId).catch((error: unknown) => {
        log.warn({ err: error, runId: lease.runId }, 'cancel not recorded; the next beat brings it again');
      });
    }
    return beatInterval(lease.expiresAt - performance.now(), lease.lengthMs);
  }

  /** A 409 in the finish only ends the beating: the platform closes the assignment with the finalize (design 6). */
  async #settleLost(lease: KeptLease, standing: Standing | undefined): Promise<number> {
    const { runStates, log } = this.#options;
    if (standing === undefined) return RECORD_AGAIN_MS;
    if (standing !== 'over' && standing !== 'finalizing') {
      const marking = runStates.markLeaseLost(lease.runId, lease.leaseId);
      const marked = await waitFor(marking, { ms: STANDING_WAIT_MS }).catch(() => undefined);
      if (marked?.outcome !== 'settled') return RECORD_AGAIN_MS;
      log.warn(
        { runId: lease.runId, leaseId: lease.leaseId },
        'the platform has given the run away: lease lost',
      );
    }
    this.#leases.drop(lease);
    return 0;
  }

  /** Of whichever runs Redis could tell in time. */
  async #standings(leases: readonly KeptLease[]): Promise<ReadonlyMap<string, Standing>> {
    const asking = standingsOf(this.#options.runStates, leases);
    const asked = await waitFor(asking, { ms: STANDING_WAIT_MS }).catch(() => undefined);
    return asked?.outcome === 'settled' ? asked.value : new Map();
  }

  #spread(ms: number): number {
    return ms * (1 - BEAT_JITTER * this.#random());
  }
}
