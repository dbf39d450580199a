// A time-limited right: of a runner to an assignment, of a worker to a run, of a runner to an offer. It ends by itself,
// and it ends at its time also when the process was too busy for its timer: whoever asks is told by the clock.

export class Lease {
  readonly #onExpired: () => void;
  #timer: NodeJS.Timeout | undefined;
  #until = 0;

  /** @param onExpired called once, unless the lease was released before */
  constructor(ms: number, onExpired: () => void) {
    this.#onExpired = onExpired;
    this.#arm(ms);
  }

  /** ms since the epoch. */
  get until(): number {
    return this.#until;
  }

  /** Whether it still stands; an overdue one expires on the spot. */
  get holds(): boolean {
    if (this.#timer === undefined) return false;
    if (Date.now() < this.#until) return true;
    this.#expire();
    return false;
  }

  /** From now; `false` when it has ended. */
  renew(ms: number): boolean {
    if (!this.holds) return false;
    this.#arm(ms);
    return true;
  }

  release(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(ms: number): void {
    clearTimeout(this.#timer);
    this.#until = Date.now() + ms;
    this.#timer = setTimeout(() => this.#expire(), ms);
    this.#timer.unref();
  }

  #expire(): void {
    if (this.#timer === undefined) return;
    this.release();
    this.#onExpired();
  }
}
