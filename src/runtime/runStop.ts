// The wish to end a run early, and everybody who has to hear of it. A stop is not the loss of the run: rows and
// finalize still go out (design section 5). The first reason stays.

import { setMaxListeners } from 'node:events';
import type { StopReason } from '../contract/fleetCalls.js';
import { cancelled } from './runFailure.js';

export class RunStop {
  readonly #abort = new AbortController();
  #reason: StopReason | undefined;

  constructor() {
    setMaxListeners(0, this.#abort.signal);
  }

  /** Aborted with the error that every stopped call fails with. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get reason(): StopReason | undefined {
    return this.#reason;
  }

  stop(reason: StopReason): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#abort.abort(cancelled(reason));
  }

  /** Calls back once, at once when the stop has come already. */
  onStop(listener: (reason: StopReason) => void): void {
    if (this.#reason !== undefined) listener(this.#reason);
    else
      this.signal.addEventListener('abort', () => this.#reason !== undefined && listener(this.#reason), {
        once: true,
      });
  }
}
