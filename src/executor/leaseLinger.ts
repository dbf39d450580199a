// Keeps the run leases of runs that have left their slot but whose finalize the platform hasn't acknowledged yet.
// Without it a heartbeat would stop before the work that it covers has finished (P26): an outage of the control plane
// at the wrong moment would let the lease lapse, and the platform would run a finished run again.

import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { RunStates } from '../queue/runState.js';
import type { RunLease } from './runLease.js';
import { pause } from './waiting.js';

/** How often the run records of lingering runs are looked at: one command for all of them. */
const LOOK_MS = 100;
const TROUBLE_PAUSE_MS = 1_000;

export class LeaseLinger {
  readonly #runStates: Pick<RunStates, 'phases'>;
  readonly #log: Logger;
  readonly #leases = new Map<string, RunLease>();
  readonly #stopped = new AbortController();
  #watching: Promise<void> | undefined;

  constructor(runStates: Pick<RunStates, 'phases'>, log: Logger) {
    this.#runStates = runStates;
    this.#log = log;
  }

  /** Takes the lease over; its renewals go on until the run is done, the lease is lost, or {@link stop}. */
  add(runId: string, lease: RunLease): void {
    const former = this.#leases.get(runId);
    this.#leases.set(runId, lease);
    if (former !== undefined && former !== lease) void former.stop();
    this.#watching ??= this.#watch();
  }

  /** Resolves when no run is left, or when it is told that time is up; leases that are left then are let go. */
  async stop(isTimeUp: () => boolean): Promise<void> {
    while (this.#leases.size > 0 && !isTimeUp()) await delay(LOOK_MS);
    this.#stopped.abort();
    await this.#watching;
    await Promise.all([...this.#leases.values()].map((lease) => lease.stop()));
    this.#leases.clear();
  }

  async #watch(): Promise<void> {
    const signal = this.#stopped.signal;
    for (;;) {
      if (!(await pause(LOOK_MS, signal))) return;
      try {
        await this.#releaseDone();
      } catch (error) {
        this.#log.warn({ err: error }, 'can not see which runs are finalized, trying again');
        await pause(TROUBLE_PAUSE_MS, signal);
      }
      if (this.#leases.size === 0) {
        this.#watching = undefined;
        return;
      }
    }
  }

  async #releaseDone(): Promise<void> {
    const phases = await this.#runStates.phases([...this.#leases.keys()]);
    for (const [runId, phase] of phases) {
      // A record that is gone belongs to a run that was given up: there is nothing to keep the lease for.
      if (phase !== 'done' && phase !== null) continue;
      const lease = this.#leases.get(runId);
      this.#leases.delete(runId);
      await lease?.stop();
    }
  }
}
