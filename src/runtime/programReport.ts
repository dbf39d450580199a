// What the program has said about its own end: a value, or what it threw. Whether that counts is decided where the
// process ends (`programRun.ts`).

import type { UnknownRecord } from '../contract/json.js';
import { outputRefusal } from './outputBound.js';
import { RunFailure, type Thrown } from './runFailure.js';

export class ProgramReport {
  #value: { readonly value: unknown } | undefined;
  #thrown: Thrown | undefined;
  #stack: string | undefined;

  /** A second value replaces the first. @throws RunFailure `VALIDATION_FAILED` */
  returned(value: unknown): void {
    const refusal = outputRefusal(value);
    if (refusal !== undefined) throw new RunFailure(refusal.code, refusal.message, { hint: refusal.hint });
    this.#value = { value: value ?? null };
  }

  threw(params: UnknownRecord): void {
    const { name, code, message, hint, stack } = params;
    this.#stack = typeof stack === 'string' ? stack : undefined;
    this.#thrown = { name, code, message, hint };
  }

  get value(): { readonly value: unknown } | undefined {
    return this.#value;
  }

  /** Where it was thrown, for a log; it never leaves with the run's error. */
  get stack(): string | undefined {
    return this.#stack;
  }

  get thrown(): Thrown | undefined {
    return this.#thrown;
  }
}
