// Redaction of a text that arrives in pieces. Guards against a secret split over two deltas, which a search of each
// piece can't see (R16): the end of what came is held back while it may be the beginning of a secret, and no longer.
// All pieces together give exactly what `redact` gives for the whole text, and memory stays below the longest secret.

import { cover } from './redact.js';
import type { SecretSet } from './secretSet.js';

export class HoldBack {
  readonly #set: SecretSet;
  #held = '';
  /** So many characters of `#held` belong to a secret whose replacement has been given out. */
  #covered = 0;

  /** Secrets may be added to the set at any time; they count from the next piece on, and for what is held. */
  constructor(set: SecretSet) {
    this.#set = set;
  }

  /** The text that may be shown now; often the whole delta, sometimes nothing. */
  push(delta: string): string {
    const text = this.#held + delta;
    const until = text.length - this.#set.openTail(text);
    return this.#give(text, until);
  }

  /** The text ended (end of a block or call): what was held back turned out to be no secret, and is given out. */
  flush(): string {
    return this.#give(this.#held, this.#held.length);
  }

  /** The text is void (a reset): what was held back is forgotten. */
  discard(): void {
    this.#held = '';
    this.#covered = 0;
  }

  #give(text: string, until: number): string {
    const { text: shown, end } = cover(text, this.#set, this.#covered, until);
    this.#held = text.slice(until);
    this.#covered = Math.max(0, end - until);
    return shown;
  }
}
