// The requests that a door has in hand. Each has one abort signal, and whatever ends it (the sandbox hung up, the
// fence fell, the door closed) goes through that signal to the upstream socket. It guards against work that goes on
// for nobody: a model call that bills on after its sandbox is gone, a call of an attempt that lost its run.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { CallEnded, sendBytes } from './answers.js';

/** Why a call ended before its answer did. */
export type CallEnd = 'client_gone' | 'fenced' | 'closed';

export class Call {
  readonly #abort = new AbortController();
  readonly #onClose: () => void;
  #ended: CallEnd | undefined;

  constructor(
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    /** The fence, asked before every write; `false` has also ended the call. */
    readonly mayAct: () => boolean,
  ) {
    this.#onClose = () => {
      if (!res.writableFinished) this.end('client_gone');
    };
    res.once('close', this.#onClose);
    // Without a listener a broken connection would be an uncaught error; 'close' follows and says what matters.
    req.on('error', ignore);
    res.on('error', ignore);
  }

  /** Aborted as soon as there is no point in going on. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get ended(): CallEnd | undefined {
    return this.#ended;
  }

  /** The first end stays. */
  end(reason: CallEnd): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    this.#abort.abort(new CallEnded(reason));
  }

  /** The handler is through; the call can no longer be ended from outside. */
  release(): void {
    this.res.off('close', this.#onClose);
  }

  /** Sends a whole answer. @throws CallEnded when it may not be given any more */
  answer(status: number, body: Uint8Array, headers: Readonly<Record<string, string>> = {}): void {
    this.throwIfEnded();
    sendBytes(this.res, status, body, headers);
  }

  json(status: number, value: unknown): void {
    this.answer(status, Buffer.from(JSON.stringify(value)), { 'content-type': 'application/json' });
  }

  /** @throws CallEnded */
  throwIfEnded(): void {
    if (!this.mayAct()) throw new CallEnded('fenced');
    this.signal.throwIfAborted();
  }

  /** Writes part of a streamed answer and waits while the sandbox reads slower than we write (back-pressure). */
  async write(bytes: Uint8Array | string): Promise<void> {
    this.throwIfEnded();
    if (this.res.write(bytes)) return;
    await new Promise<void>((resolve, reject) => {
      const done = (): void => {
        this.res.off('drain', done);
        this.signal.removeEventListener('abort', done);
        if (this.signal.aborted) reject(new CallEnded(this.#ended));
        else resolve();
      };
      this.res.once('drain', done);
      this.signal.addEventListener('abort', done, { once: true });
    });
  }
}

/** Work that is done one after the other, in the order in which it was asked for. */
export class Turns {
  /** Ends when the last of them has ended; never rejects. */
  #tail: Promise<unknown> = Promise.resolve();

  take<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#tail.then(work);
    this.#tail = mine.catch(ignore);
    return mine;
  }

  /** Resolves when nothing that was asked for up to now is left. */
  async idle(): Promise<void> {
    await this.#tail;
  }
}

/** A wait before another try; ends early, without an error, when `signal` is aborted. */
export type Pause = (ms: number, signal: AbortSignal) => Promise<unknown>;

/** Settles as `promise` does, or rejects with {@link CallEnded} as soon as `signal` is aborted. */
export async function unlessEnded<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(ignore);
    throw new CallEnded('aborted');
  }
  let onAbort: () => void = ignore;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => {
      reject(new CallEnded('aborted'));
    };
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function ignore(): void {
  // The event or the loser of a race is of no interest; see where it is used.
}
