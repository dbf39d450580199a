// Is it the run that can't be started, or this machine? A full disk, a lost mount or too many processes fail every start,
// and an executor whose slots are always free again would take one run after the other and fail them all. So it pauses
// after a start that failed, longer each time, and holds the failure against the run only while no other run fails.

const PAUSE_FIRST_MS = 1_000;
const PAUSE_CEILING_MS = 30_000;

export class StartTrouble {
  /** Runs that could not be started since one could. */
  readonly #runs = new Set<string>();
  #failures = 0;
  #owedMs = 0;

  /** @returns whether the failure may be the run's own doing. */
  failed(runId: string): boolean {
    this.#owedMs = Math.min(PAUSE_CEILING_MS, PAUSE_FIRST_MS * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
    this.#runs.add(runId);
    return this.#runs.size === 1;
  }

  /** A sandbox has come to work: this machine can. */
  worked(): void {
    this.#failures = 0;
    this.#owedMs = 0;
    this.#runs.clear();
  }

  /** How long to take nothing now, in ms. Told once a failure: an idle executor has nothing to pause from. */
  takePauseMs(): number {
    const owedMs = this.#owedMs;
    this.#owedMs = 0;
    return owedMs;
  }
}
