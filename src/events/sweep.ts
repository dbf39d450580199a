// Gives a flush job to lanes that have work and lost theirs: an appender that died between its append and its flush
// job, a queue that forgot. A recovery that waits for somebody to ask never happens (P17). A lane that has a job keeps
// the one it has, so a sweep in vain costs one script a lane.

import type { Logger } from 'pino';
import type { EventsQueue, Lanes } from '../queue/fleet.js';

export interface SweepOptions {
  readonly lanes: Pick<Lanes, 'withWork'>;
  readonly flushes: Pick<EventsQueue, 'add'>;
  readonly log: Logger;
  /** Between sweeps, and how long nothing must have happened to a lane. Default 2 s. */
  readonly everyMs?: number | undefined;
  readonly random?: (() => number) | undefined;
}

const EVERY_MS = 2_000;
/** Share by which the time between two sweeps strays, so that many shippers don't sweep in step. */
const JITTER = 0.25;
/** Lanes of one sweep: after a loss of the whole queue the next ones go on. */
const LANES_AT_ONCE = 500;

export class Sweep {
  readonly #options: SweepOptions;
  readonly #everyMs: number;
  readonly #random: () => number;
  #timer: NodeJS.Timeout | undefined;
  #state: 'new' | 'running' | 'stopped' = 'new';
  #failing = false;

  constructor(options: SweepOptions) {
    this.#options = options;
    this.#everyMs = options.everyMs ?? EVERY_MS;
    this.#random = options.random ?? Math.random;
  }

  start(): void {
    if (this.#state !== 'new') return;
    this.#state = 'running';
    this.#schedule();
  }

  /** No sweep begins after this, and one under way ends before its next lane. */
  stop(): void {
    this.#state = 'stopped';
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#state !== 'running') return;
    const delayMs = this.#everyMs * (1 - JITTER + 2 * JITTER * this.#random());
    this.#timer = setTimeout(() => void this.#sweep().then(() => this.#schedule()), delayMs).unref();
  }

  async #sweep(): Promise<void> {
    const { lanes, flushes, log } = this.#options;
    try {
      for (const runId of await lanes.withWork(this.#everyMs, LANES_AT_ONCE)) {
        if (this.#state !== 'running') return;
        await flushes.add(runId);
      }
      this.#failing = false;
    } catch (error) {
      if (this.#state !== 'running' || this.#failing) return;
      this.#failing = true;
      const reason = error instanceof Error ? error.message : String(error);
      log.warn({ reason }, 'forgotten lanes could not be looked for; trying again');
    }
  }
}
