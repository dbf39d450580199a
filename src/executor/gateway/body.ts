// Request bodies, whole and bounded. It guards the executor's memory: one bound a route, and one for all bodies that
// a door holds at the same time, because a model call keeps its body for as long as it may be sent again.

import type { IncomingMessage } from 'node:http';
import { CallEnded, Refusal } from './answers.js';
import { unlessEnded } from './calls.js';

/** How much of an oversized body is read and thrown away, so that the sandbox can read its refusal at all. */
const DISCARD_BYTES = 64 * 1024 * 1024;

/** All request bodies that one door holds. */
export class BodyBudget {
  #heldBytes = 0;

  constructor(readonly limitBytes: number) {}

  /** `false` when the bodies in hand would pass the bound. */
  take(bytes: number): boolean {
    if (this.#heldBytes + bytes > this.limitBytes) return false;
    this.#heldBytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#heldBytes -= bytes;
  }
}

/**
 * Reads the whole body, lets `use` work with it, and gives its bytes back to the budget afterwards.
 *
 * @throws Refusal 413 above `limitBytes`, 429 when the budget is used up; CallEnded when the sandbox hung up.
 */
export async function withBody<T>(
  req: IncomingMessage,
  options: { readonly limitBytes: number; readonly budget: BodyBudget; readonly signal: AbortSignal },
  use: (body: Buffer) => Promise<T>,
): Promise<T> {
  const held = new HeldBody(options.limitBytes, options.budget);
  try {
    await unlessEnded(readInto(held, req, options.signal), options.signal);
    return await use(held.whole());
  } finally {
    held.drop();
  }
}

class HeldBody {
  #chunks: Buffer[] = [];
  #heldBytes = 0;
  #seenBytes = 0;
  #refusal: Refusal | undefined;

  constructor(
    readonly limitBytes: number,
    readonly budget: BodyBudget,
  ) {}

  /** `false`: so far over the bound that reading on only to be polite is over. */
  add(chunk: Buffer): boolean {
    this.#seenBytes += chunk.byteLength;
    if (this.#refusal === undefined) this.#refusal = this.#keep(chunk);
    return this.#seenBytes <= this.limitBytes + DISCARD_BYTES;
  }

  whole(): Buffer {
    if (this.#refusal !== undefined) throw this.#refusal;
    return Buffer.concat(this.#chunks, this.#heldBytes);
  }

  drop(): void {
    this.budget.give(this.#heldBytes);
    this.#heldBytes = 0;
    this.#chunks = [];
  }

  #keep(chunk: Buffer): Refusal | undefined {
    if (this.#seenBytes > this.limitBytes) {
      this.drop();
      return new Refusal(413, 'BODY_TOO_LARGE', `The request body is larger than ${this.limitBytes} bytes.`);
    }
    if (!this.budget.take(chunk.byteLength)) {
      this.drop();
      return new Refusal(429, 'TOO_MUCH_IN_FLIGHT', 'This run has too many request bytes in flight.');
    }
    this.#heldBytes += chunk.byteLength;
    this.#chunks.push(chunk);
    return undefined;
  }
}

async function readInto(held: HeldBody, req: IncomingMessage, signal: AbortSignal): Promise<void> {
  try {
    for await (const chunk of req as AsyncIterable<Buffer>) {
      // Past its end the body has already been given back to the budget and must not take from it again.
      if (signal.aborted || !held.add(chunk)) break;
    }
  } catch {
    // All that reading a request can fail with is that the connection broke.
    throw new CallEnded('client_gone');
  }
}

/**
 * The body as JSON. What the parser says is not passed on: it quotes the text, and the text may hold a secret.
 *
 * @throws Refusal 400.
 */
export function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    throw new Refusal(400, 'VALIDATION_FAILED', 'The request body is not valid JSON.');
  }
}
