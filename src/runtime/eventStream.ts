// The rows of one run, numbered and on their way (protocol/events.md 1, 2, 5). It guards order and loss (R7, R17): one
// pair of block and number for everything that emits, one batch in flight, the next one made of what has gathered
// meanwhile. What delivering means (retries, refusals) is `rowDelivery.ts`; what may be in a row, the caller's.

import { makeCursor, nextBlockAfter, STRIDE } from '../contract/cursors.js';
import type { RunEvent } from '../contract/events.js';

/** One batch; the gateway takes 8 MiB of encoded body, the platform 4.5 MiB. */
const BATCH_ROWS = 1_000;
const BATCH_CHARS = 1024 * 1024;
/** Above this, whoever can wait does: console output, the next model call. */
const FULL_CHARS = 2 * 1024 * 1024;
/** Above this, also a model call in progress waits; without a bound a dead gateway would fill the memory. */
const OVERFULL_CHARS = 32 * 1024 * 1024;

type WithoutEnvelope<E> = E extends unknown ? Omit<E, 'runId' | 'turnId' | 'seq' | 't'> : never;

/** An event without what the stream adds. */
export type EventBody = WithoutEnvelope<RunEvent>;

export interface Row {
  readonly cursor: number;
  /** JSON text of `{cursor, event}`. */
  readonly frame: string;
}

export interface EventStreamOptions {
  readonly runId: string;
  /** Highest cursor stored for the run; 0 when nothing is. */
  readonly lastCursor: number;
  /** Resolves when the gateway has the rows. Rejects only when this attempt may send nothing any more. */
  readonly deliver: (rows: readonly Row[]) => Promise<void>;
  /** ms since the epoch. Default `Date.now`. */
  readonly now?: () => number;
  /** Default 999 999, all that a block can have. */
  readonly rowsPerBlock?: number;
}

export class EventStream {
  readonly #options: EventStreamOptions;
  #block: number;
  #seq = 0;
  #queue: Row[] = [];
  #queuedChars = 0;
  #inFlightChars = 0;
  #sending: Promise<void> | undefined;
  #ended = false;
  #waiting: { readonly chars: number; readonly resolve: () => void }[] = [];

  constructor(options: EventStreamOptions) {
    this.#options = options;
    this.#block = nextBlockAfter(options.lastCursor);
  }

  /** Rows that nobody can take any more are dropped: the attempt has lost its run. */
  emit(event: EventBody, turnId: string = this.#options.runId): void {
    if (this.#ended) return;
    const { runId, now = Date.now, rowsPerBlock = STRIDE - 1 } = this.#options;
    // A full block is followed by another; the reference throws there (R27).
    if (this.#seq === rowsPerBlock) this.#openBlock();
    this.#seq += 1;
    const { kind, ...fields } = event;
    const cursor = makeCursor(this.#block, this.#seq);
    const frame = JSON.stringify({
      cursor,
      event: { runId, turnId, seq: this.#seq, t: now(), kind, ...fields },
    });
    this.#queue.push({ cursor, frame });
    this.#queuedChars += frame.length;
    this.#sending ??= this.#send();
  }

  /** A turn has a block of its own, whose first row is its `turn_started`. */
  startTurn(turnId: string, agent: { readonly agentId: string; readonly agentName?: string }): void {
    this.#openBlock();
    this.emit({ kind: 'turn_started', ...agent }, turnId);
  }

  get isFull(): boolean {
    return this.#chars > FULL_CHARS;
  }

  get isOverfull(): boolean {
    return this.#chars > OVERFULL_CHARS;
  }

  /** Resolves when there is room again, or nothing is sent any more. */
  async room(): Promise<void> {
    if (!this.isFull || this.#ended) return;
    await new Promise<void>((resolve) => this.#waiting.push({ chars: FULL_CHARS, resolve }));
  }

  /** Resolves when every row emitted so far, also one in flight, is with the gateway, or nothing is sent any more. */
  async drained(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
  }

  get #chars(): number {
    return this.#queuedChars + this.#inFlightChars;
  }

  #openBlock(): void {
    this.#block += 1;
    this.#seq = 0;
  }

  async #send(): Promise<void> {
    // What is emitted in one go leaves in one batch.
    await Promise.resolve();
    try {
      while (this.#queue.length > 0) {
        const batch = this.#takeBatch();
        await this.#options.deliver(batch);
        this.#inFlightChars = 0;
        this.#wake();
      }
    } catch {
      this.#ended = true;
      this.#queue = [];
      this.#queuedChars = 0;
      this.#inFlightChars = 0;
      this.#wake();
    } finally {
      this.#sending = undefined;
    }
  }

  #takeBatch(): readonly Row[] {
    let rows = 0;
    let chars = 0;
    for (const { frame } of this.#queue) {
      if (rows > 0 && (rows === BATCH_ROWS || chars + frame.length > BATCH_CHARS)) break;
      rows += 1;
      chars += frame.length;
    }
    this.#queuedChars -= chars;
    this.#inFlightChars = chars;
    return this.#queue.splice(0, rows);
  }

  #wake(): void {
    const ready = this.#waiting.filter((waiter) => this.#chars <= waiter.chars);
    this.#waiting = this.#waiting.filter((waiter) => this.#chars > waiter.chars);
    for (const waiter of ready) waiter.resolve();
  }
}
