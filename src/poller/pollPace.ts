// How long a poll loop pauses between two polls. Guards against hot loops, on answers that bring nothing and come at
// once (R21) and on failures (R6), and against a fleet of pollers in step.
import { fullJitter, type Random } from '../platform/backoff.js';
import { pause } from '../waiting/waiting.js';

/** At most four answers a second that bring nothing (design section 4). */
const IDLE_PACE_MS = 250;

/** Back-off of failing polls and claims (`protocol/pool.md` 5.1). */
const BACK_OFF = { baseMs: 500, ceilingMs: 10_000 };

/** A server may send us away for longer than our own back-off, within reason. */
const RETRY_AFTER_CEILING_MS = 300_000;

export class PollPace {
  readonly #random: Random;
  readonly #signal: AbortSignal;

  /** @param signal ends every pause at once */
  constructor(random: Random, signal: AbortSignal) {
    this.#random = random;
    this.#signal = signal;
  }

  /**
   * After an answer that brought nothing: a poll that was held needs no pause but the jitter; one that was answered at
   * once waits out its share.
   *
   * @param askedAt when the poll was sent, on the clock of `performance.now()`
   */
  async idle(askedAt: number): Promise<void> {
    const rest = IDLE_PACE_MS - (performance.now() - askedAt);
    await pause(Math.max(rest, IDLE_PACE_MS * this.#random()), this.#signal);
  }

  /**
   * After a failure.
   *
   * @param failures in a row, at least 1
   * @param retryAfterMs what the answer asked for
   */
  async failed(failures: number, retryAfterMs?: number): Promise<void> {
    const own = fullJitter(failures, { ...BACK_OFF, random: this.#random });
    const asked = Math.min(retryAfterMs ?? 0, RETRY_AFTER_CEILING_MS);
    await pause(Math.max(own, asked), this.#signal);
  }
}
