// Is it the run that can't be started, or this machine? A full disk, a lost mount or too many processes fail every start,
// and an executor whose slots are always free again would take one run after the other and fail them all. So it pauses
// after a start that failed, longer each time, and holds the failure against the run only while no other run fails.

const PAUSE_FIRST_MS = 1_000;
const PAUSE_CEILING_MS = 30_000;

export class StartTrouble {
  /** Runs that could not be started since one could. */
  readonly #runs = new Set<string>();
  #failures = 0;

  /** @returns whether the failure may be the run's own doing. */
  failed(runId: string): boolean {
    this.#failures += 1;
    this.#runs.add(runId);
    return this.#runs.size === 1;
  }

  /** A sandbox has come to work: this machine can. */
  worked(): void {
    this.#failures = 0;
    this.#runs.clear();
  }

  /** How long to take nothing, in ms, counted from the last failure; 0 without one. */
  get pauseMs(): number {
    if (this.#failures === 0) return 0;
    return Math.min(PAUSE_CEILING_MS, PAUSE_FIRST_MS * 2 ** Math.min(this.#failures - 1, 10));
  }
}
