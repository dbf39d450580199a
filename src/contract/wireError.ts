// What another party sent can't be used. Guards against the silent refusal (R25): the message names the endpoint and
// the field, and never the value, which may be a credential.

import { OperatorError } from './operatorError.js';

export interface WireProblem {
  /** What was read, in words: `claim response`. */
  readonly endpoint: string;
  /** Dotted path of the field; empty for the whole body. */
  readonly field: string;
  /** What is wrong with it: `is missing`, `must be an integer`. */
  readonly problem: string;
}

/** A body that lacks or mistypes a field that we need. Code `WIRE_INVALID`. */
export class WireError extends OperatorError {
  override readonly name = 'WireError';
  readonly endpoint: string;
  readonly field: string;

  constructor({ endpoint, field, problem }: WireProblem, options: { readonly cause?: unknown } = {}) {
    super('WIRE_INVALID', `${endpoint}: ${field === '' ? 'the body' : field} ${problem}`, options);
    this.endpoint = endpoint;
    this.field = field;
  }
}
