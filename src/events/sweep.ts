// Gives a flush job to lanes that have work and lost theirs: an appender that died between its append and its flush
// job, a queue that forgot. A recovery that waits for somebody to ask never happens (P17). A lane that has a job keeps
// the one it has, so a sweep in vain costs one script a lane.

import type { Logger } from 'pino';
import type { Fleet } from '../queue/fleet.js';

/** Between sweeps, and how long nothing must have happened to a lane (design section 9). */
const EVERY_MS = 2_000;
/** Share by which the time between two sweeps strays, so that many shippers don't sweep in step. */
const JITTER = 0.25;
const LANES_AT_ONCE = 500;

export class LaneSweep {
  readonly #fleet: Pick<Fleet, 'lanes' | 'flushes'>;
  readonly #log: Logger;
  readonly #random: () => number;
  #timer: NodeJS.Timeout | undefined;
  #state: 'new' | 'running' | 'stopped' = 'new';
  #failing = false;

  constructor(fleet: Pick<Fleet, 'lanes' | 'flushes'>, log: Logger, random: () => number = Math.random) {
    this.#fleet = fleet;
    this.#log = log;
    this.#random = random;
  }

  start(): void {
    if (this.#state !== 'new') return;
    this.#state = 'running';
    this.#schedule();
  }

  /** No sweep begins after this, and one under way ends before its next lane. */
  async stop(): Promise<void> {
    this.#state = 'stopped';
    clearTimeout(this.#timer);
    await Promise.resolve();
  }

  #schedule(): void {
    if (this.#state !== 'running') return;
    const delayMs = EVERY_MS * (1 - JITTER + 2 * JITTER * this.#random());
    this.#timer = setTimeout(() => void this.#sweep().then(() => this.#schedule()), delayMs).unref();
  }

  async #sweep(): Promise<void> {
    try {
      for (const runId of await this.#fleet.lanes.withWork(EVERY_MS, LANES_AT_ONCE)) {
        if (this.#state !== 'running') return;
        await this.#fleet.flushes.add(runId);
      }
      this.#failing = false;
    } catch (error) {
      if (this.#state !== 'running' || this.#failing) return;
      this.#failing = true;
      const reason = error instanceof Error ? error.message : String(error);
      this.#log.warn({ reason }, 'forgotten lanes could not be looked for; trying again');
    }
  }
}
