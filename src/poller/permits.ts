// How many more runs this pool's executors have room for. A claim starts a lease and mints credentials, so nothing is
// claimed that no slot waits for (design section 4). Counts come from the queue and the executor records themselves,
// so a crash leaks nothing (P39). Reservations between several pollers come later.
import type { Logger } from 'pino';
import type { Executors } from '../queue/executors.js';
import type { RunsQueue } from '../queue/runsQueue.js';
import { pause, waitFor } from '../waiting/waiting.js';

export interface PermitsOptions {
  readonly fleet: { readonly executors: Pick<Executors, 'live'>; readonly runs: Pick<RunsQueue, 'depth'> };
  readonly pool: string;
  readonly log: Logger;
  /** Claims of this process that are not in the queue yet. */
  readonly inHand: () => number;
}

/** How often a full or unreachable fleet is looked at again. */
const LOOK_MS = 100;
const TROUBLE_LOOK_MS = 1_000;

/** Counting is quick; longer means that Redis is away. */
const COUNT_WAIT_MS = 5_000;

export class Permits {
  readonly #options: PermitsOptions;
  #noSlotsSaid = false;
  #troubleSaid = false;

  constructor(options: PermitsOptions) {
    this.#options = options;
  }

  /** Waits until a run may be claimed; false when `signal` fell first. */
  async wait(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      const free = await this.free(signal);
      if (free !== null && free > 0) return true;
      await pause(free === null ? TROUBLE_LOOK_MS : LOOK_MS, signal);
    }
    return false;
  }

  /** Runs that may be claimed now, 0 or less = none; null when the fleet can't be counted. */
  async free(signal: AbortSignal): Promise<number | null> {
    const { fleet, pool, log } = this.#options;
    // Before the queue is counted: a claim that moves from here to there meanwhile counts twice rather than never.
    const inHand = this.#options.inHand();
    const counting = Promise.all([fleet.executors.live(pool), fleet.runs.depth(pool)]);
    let err: unknown;
    const counted = await waitFor(counting, { ms: COUNT_WAIT_MS, signal }).catch((error: unknown) => {
      err = error;
      return undefined;
    });
    if (counted?.outcome !== 'settled') {
      if (!this.#troubleSaid && !signal.aborted)
        log.warn({ err }, 'free slots can not be counted: nothing is claimed');
      this.#troubleSaid = true;
      return null;
    }
    this.#troubleSaid = false;
    const [executors, depth] = counted.value;
    const ready = executors.some(({ state }) => state === 'ready');
    if (!ready && !this.#noSlotsSaid) log.warn({ pool }, 'no executor is ready for this pool: not polling');
    this.#noSlotsSaid = !ready;
    if (!ready) return 0;
    // What a draining executor still runs is among the queue's counts; it must not take room from the others.
    const room = executors.reduce(
      (sum, { state, slots, busy }) => sum + (state === 'ready' ? slots : busy),
      0,
    );
    return room - depth.waiting - depth.active - depth.delayed - inHand;
  }
}
