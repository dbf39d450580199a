// May this attempt still act? One object says so, for everything that an attempt does (design section 5).
// It guards against a run that executes twice: an attempt whose queue lock could lapse, whose lease went to
// somebody else or which was handed back must have stopped before its successor starts, even when the process was
// frozen and no timer ran. A cancel is not a fence: it never makes one fall.

/** Why an attempt lost the right to act. Every one is a loss of ownership. */
export type FenceReason =
  | 'lock_expiring'
  | 'lock_lost'
  | 'superseded'
  | 'foreign_attempt'
  | 'lease_lost'
  | 'handed_back'
  /** Something of the sandbox may still live: only the lapse of the lock may let a successor start. */
  | 'sandbox_unproven';

/** Clocks in milliseconds: `mono` never goes back but stands still while a host is suspended, `wall` the reverse. */
export interface Clocks {
  mono(): number;
  wall(): number;
}

export const systemClocks: Clocks = { mono: () => performance.now(), wall: () => Date.now() };

/** The figures of design section 5; tests scale them together. */
export interface LockTiming {
  /** L: how long the queue lock lives after a fetch or a renewal. */
  readonly lockMs: number;
  /** R: the pause between renewals. */
  readonly renewMs: number;
  /** M: stop grace, kill and clock slack; an attempt begins to stop this long before its lock can lapse. */
  readonly marginMs: number;
}

export const DEFAULT_LOCK_TIMING: LockTiming = { lockMs: 60_000, renewMs: 10_000, marginMs: 10_000 };

/** What other parts see of a {@link Fence}: they may ask, only the attempt's own parts may move it. */
export interface FenceView {
  /** Aborted with a {@link FenceReason} once the fence has fallen. */
  readonly signal: AbortSignal;
  /** Asks the clocks now; `false` means: dispatch nothing any more. */
  check(): boolean;
}

export class Fence implements FenceView {
  readonly #abort = new AbortController();
  readonly #clocks: Clocks;
  readonly #allowanceMs: number;
  #base: { readonly mono: number; readonly wall: number };
  #timer: NodeJS.Timeout | undefined;
  #reason: FenceReason | undefined;

  /**
   * @param sentAtMonoMs the monotonic time at which the fetch that took the job was *sent*: the lock can't have
   *   begun earlier, so what is counted from there always ends before the lock does.
   */
  constructor(sentAtMonoMs: number, timing: LockTiming, clocks: Clocks = systemClocks) {
    this.#clocks = clocks;
    this.#allowanceMs = timing.lockMs - timing.marginMs;
    this.#base = this.#baseAt(sentAtMonoMs);
    this.#arm();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get reason(): FenceReason | undefined {
    return this.#reason;
  }

  /** How long the attempt may go on without another renewal, in ms; 0 once the fence has fallen. */
  remainingMs(): number {
    if (this.#reason !== undefined) return 0;
    const elapsed = Math.max(this.#clocks.mono() - this.#base.mono, this.#clocks.wall() - this.#base.wall);
    return Math.max(0, this.#allowanceMs - elapsed);
  }

  check(): boolean {
    if (this.#reason !== undefined) return false;
    if (this.remainingMs() > 0) return true;
    this.fall('lock_expiring');
    return false;
  }

  /**
   * A renewal that was sent at `sentAtMonoMs` has been confirmed. An attempt that is already out of time is not
   * brought back: it may have been frozen past its own deadline while the answer was on its way.
   */
  extend(sentAtMonoMs: number): void {
    if (!this.check()) return;
    if (sentAtMonoMs <= this.#base.mono) return;
    this.#base = this.#baseAt(sentAtMonoMs);
    this.#arm();
  }

  /** The first reason stays. */
  fall(reason: FenceReason): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#disarm();
    this.#abort.abort(reason);
  }

  /** The attempt has ended and given its job away in order: the clock no longer matters. */
  retire(): void {
    this.#disarm();
  }

  #baseAt(sentAtMonoMs: number): { mono: number; wall: number } {
    return { mono: sentAtMonoMs, wall: this.#clocks.wall() - (this.#clocks.mono() - sentAtMonoMs) };
  }

  #arm(): void {
    this.#disarm();
    // A timer may fire a little early by the clock that counts here, so it looks again instead of trusting itself.
    this.#timer = setTimeout(
      () => {
        if (this.check()) this.#arm();
      },
      Math.max(1, Math.ceil(this.remainingMs())),
    );
    this.#timer.unref();
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
