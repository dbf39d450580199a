// A streamed answer from the writer's side: one write a frame, as slow as the reader takes it, and a signal that falls
// when the reader is gone, so that nothing is generated for nobody (protocol/inference.md 10).

import type { ServerResponse } from 'node:http';

const DROP_DELAY_MS = 50;

export class Outlet {
  readonly #res: ServerResponse;
  readonly #gone = new AbortController();
  #lastWriteAt = performance.now();

  constructor(res: ServerResponse) {
    this.#res = res;
    res.once('close', () => this.#gone.abort());
  }

  /** Aborted when the connection has closed, whoever closed it. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** How long nothing has been written, in ms. */
  get silentMs(): number {
    return performance.now() - this.#lastWriteAt;
  }

  /** Resolves when there is room for more, or nobody reads any more. */
  async write(text: string): Promise<void> {
    if (this.signal.aborted) return;
    this.#lastWriteAt = performance.now();
    if (this.#res.write(text)) return;
    await new Promise<void>((resolve) => {
      const go = (): void => {
        this.#res.off('drain', go);
        this.#res.off('close', go);
        resolve();
      };
      this.#res.once('drain', go);
      this.#res.once('close', go);
    });
  }

  end(): void {
    this.#res.end();
  }

  /**
   * Breaks the connection in the middle of the answer, once what was said has had time to arrive: a reader that meets
   * the break first would discard it unread.
   */
  drop(): void {
    setTimeout(() => this.#res.socket?.destroySoon(), DROP_DELAY_MS);
  }
}
