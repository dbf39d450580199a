// Keeps the run leases of runs that have left their slot but whose finalize the platform hasn't acknowledged yet.
// Without it a heartbeat would stop before the work that it covers has finished (P26): an outage of the control plane
// at the wrong moment would let the lease lapse, and the platform would run a finished run again.

import type { Logger } from 'pino';
import type { RunStates } from '../queue/runState.js';
import type { RunLease } from './runLease.js';
import { pause, waitFor } from '../waiting/waiting.js';

/** How often the run records of lingering runs are looked at: one command for all of them. */
const LOOK_MS = 100;
const TROUBLE_PAUSE_MS = 1_000;

interface Lingering {
  readonly runId: string;
  readonly leaseId: string;
  readonly lease: Pick<RunLease, 'stop'>;
}

export class LeaseLinger {
  readonly #runStates: Pick<RunStates, 'claimPhases'>;
  readonly #log: Logger;
  /** By lease id. */
  readonly #lingering = new Map<string, Lingering>();
  readonly #stopped = new AbortController();
  #watching: Promise<void> | undefined;

  constructor(runStates: Pick<RunStates, 'claimPhases'>, log: Logger) {
    this.#runStates = runStates;
    this.#log = log;
  }

  /** Takes the lease over; its renewals go on until nothing of its claim is left, or {@link stop}. */
  add(claim: Lingering): void {
    this.#lingering.set(claim.leaseId, claim);
    this.#watching ??= this.#watch();
  }

  /** Resolves when no run is left, or when it is told that time is up; leases that are left then are let go. */
  async stop(isTimeUp: () => boolean): Promise<void> {
    while (this.#lingering.size > 0 && !isTimeUp()) await pause(LOOK_MS, undefined, { ref: true });
    this.#stopped.abort();
    await this.#watching;
    await Promise.all([...this.#lingering.values()].map(({ lease }) => lease.stop()));
    this.#lingering.clear();
  }

  async #watch(): Promise<void> {
    const signal = this.#stopped.signal;
    for (;;) {
      if (!(await pause(LOOK_MS, signal))) return;
      try {
        await this.#releaseOver();
      } catch (error) {
        this.#log.warn({ err: error }, 'can not see which runs are finalized, trying again');
        await pause(TROUBLE_PAUSE_MS, signal);
      }
      if (this.#lingering.size === 0) {
        this.#watching = undefined;
        return;
      }
    }
  }

  /** Not only for runs that are done: a parked or given up claim must not keep the platform from recovering its run. */
  async #releaseOver(): Promise<void> {
    const claims = [...this.#lingering.values()];
    // While Redis is away an answer may never come, and the end must not wait for it (P25).
    const asked = await waitFor(this.#runStates.claimPhases(claims), { signal: this.#stopped.signal });
    if (asked.outcome !== 'settled') return;
    for (const [index, { leaseId, lease }] of claims.entries()) {
      if (asked.value[index] !== 'over') continue;
      this.#lingering.delete(leaseId);
      await lease.stop();
    }
  }
}
