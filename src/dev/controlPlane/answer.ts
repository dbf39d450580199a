// What a route answers, as a value: the server writes it, counts it, and knows what to do when nobody is there any
// more to take it. A refusal has one shape everywhere (protocol/pool.md 1) and never quotes a token or a secret.

import type { Outlet } from './outlet.js';

export interface WholeAnswer {
  readonly status: number;
  /** Absent: no body. */
  readonly body?: string | Uint8Array;
  /** Default `application/json`. */
  readonly contentType?: string;
  /** Called when the connection was gone before the answer was handed to it. */
  readonly onLost?: () => void;
}

/** Status 200 at once, then whatever `play` writes; it has ended the outlet when it resolves. */
export interface StreamedAnswer {
  readonly status: 200;
  readonly contentType: string;
  readonly play: (outlet: Outlet) => Promise<void>;
}

export type Answer = WholeAnswer | StreamedAnswer;

export function json(status: number, value: unknown): WholeAnswer {
  return { status, body: JSON.stringify(value) };
}

export const NO_CONTENT: WholeAnswer = { status: 204 };

/** Thrown where a request turns out to be unusable; everywhere else a refusal is returned. */
export class Refusal extends Error {
  override readonly name = 'Refusal';

  constructor(
    readonly status: number,
    /** SCREAMING_SNAKE_CASE. */
    readonly code: string,
    message: string,
  ) {
    super(message);
  }

  get answer(): WholeAnswer {
    return refused(this.status, this.code, this.message);
  }
}

export function refused(status: number, code: string, message: string): WholeAnswer {
  return json(status, { error: { code, message } });
}
