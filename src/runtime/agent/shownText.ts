// The text and the thinking of one model call, as viewers see it: whole secrets are replaced even when two deltas share
// them (R16), and what a reset voids is never shown late. One block for the whole call, also after a reset
// (protocol/inference.md 6).

import { HoldBack } from '../../redaction/holdBack.js';
import type { SecretSet } from '../../redaction/secretSet.js';
import type { EventBody } from '../eventStream.js';

export class ShownText {
  readonly #blockId: string;
  readonly #emit: (event: EventBody) => void;
  readonly #text: HoldBack;
  readonly #reasoning: HoldBack;
  #opened = false;

  constructor(options: {
    readonly blockId: string;
    readonly secrets: SecretSet;
    readonly emit: (event: EventBody) => void;
  }) {
    this.#blockId = options.blockId;
    this.#emit = options.emit;
    this.#text = new HoldBack(options.secrets);
    this.#reasoning = new HoldBack(options.secrets);
  }

  delta(text: string): void {
    this.#showReasoning(this.#reasoning.flush());
    if (!this.#opened) {
      this.#opened = true;
      this.#emit({ kind: 'text_start', blockId: this.#blockId });
    }
    this.#showText(this.#text.push(text));
  }

  reasoning(text: string): void {
    this.#showText(this.#text.flush());
    this.#showReasoning(this.#reasoning.push(text));
  }

  reset(): void {
    this.#text.discard();
    this.#reasoning.discard();
    this.#emit({ kind: 'turn_reset' });
  }

  /** The call returned. */
  end(): void {
    this.flush();
    if (this.#opened) this.#emit({ kind: 'text_end', blockId: this.#blockId });
  }

  /** The call failed: its block stays open, `turn_ended` closes it; what was held back is still part of it. */
  flush(): void {
    this.#showReasoning(this.#reasoning.flush());
    this.#showText(this.#text.flush());
  }

  #showText(text: string): void {
    if (text !== '') this.#emit({ kind: 'text_delta', blockId: this.#blockId, text });
  }

  #showReasoning(text: string): void {
    if (text !== '') this.#emit({ kind: 'reasoning_delta', text });
  }
}
