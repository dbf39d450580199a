// The dead man's switch, as far as the runtime itself can hold it (design section 5), and the wish to stop. It guards
// against a sandbox that acts on after its executor is frozen, dead or fenced: when the gateway is gone or its lines come
// too late, nobody vouches for this attempt any more.

import { parseWatchLine, type StopReason } from '../contract/fleetCalls.js';
import { LineReader } from '../contract/lines.js';
import { pause } from '../waiting/waiting.js';
import type { Control } from './control.js';

/** Until the first line says how long we may go on. */
const FIRST_LINE_MS = 15_000;
const LINE_BYTES = 64 * 1024;
/** How long the gateway may be away (design section 5). */
const GONE_MS = 2_000;
const RECONNECT_MS = 100;

export interface WatchOptions {
  readonly control: Pick<Control, 'stream'>;
  /** At most once. */
  readonly onStop: (reason: StopReason) => void;
  /** At most once, and never after `stop`. */
  readonly onLost: (why: string) => void;
  /** How long the connection may be gone, in ms. Default 2 000. */
  readonly goneMs?: number;
  /** Default: this process's clocks, in ms. */
  readonly clocks?: { readonly monotonic: () => number; readonly wall: () => number };
}

export class Watch {
  readonly #options: WatchOptions;
  readonly #clocks: { readonly monotonic: () => number; readonly wall: () => number };
  readonly #ended = new AbortController();
  #deadline = { monotonic: Infinity, wall: Infinity };
  #timer: NodeJS.Timeout | undefined;
  #goneTimer: NodeJS.Timeout | undefined;
  #started = false;
  #stopTold = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#clocks = options.clocks ?? { monotonic: () => performance.now(), wall: () => Date.now() };
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#extend(FIRST_LINE_MS);
    void this.#read();
  }

  stop(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#goneTimer);
    this.#ended.abort();
  }

  /** A connection that is gone is made anew; whoever isn't back in time is lost. */
  async #read(): Promise<void> {
    const { signal } = this.#ended;
    do {
      const why = await this.#readOnce();
      if (signal.aborted) return;
      this.#goneTimer ??= setTimeout(() => this.#lost(why), this.#options.goneMs ?? GONE_MS);
    } while (await pause(RECONNECT_MS, signal, { ref: true }));
  }

  /** @returns why there are no more lines */
  async #readOnce(): Promise<string> {
    const { signal } = this.#ended;
    try {
      const { status, body } = await this.#options.control.stream({
        name: '_fleet/watch',
        method: 'GET',
        path: '_fleet/watch',
        accept: 'application/x-ndjson',
        signal,
      });
      if (status !== 200) {
        const why = `the gateway answered the watch with status ${status}`;
        this.#lost(why);
        return why;
      }
      const lines = new LineReader({ maxBytes: LINE_BYTES });
      for await (const chunk of body as AsyncIterable<Buffer>) {
        for (const line of lines.push(chunk)) this.#take(line);
      }
      return 'the gateway ended the watch';
    } catch (error) {
      return `the watch broke: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  #take(text: string): void {
    const line = parseWatchLine(text);
    if (line === null || this.#ended.signal.aborted) return;
    // A process that was frozen finds old lines waiting; they must not bring a deadline back that has passed.
    if (this.#isPast()) {
      this.#lost('the deadline passed');
      return;
    }
    if (line.t === 'alive') {
      clearTimeout(this.#goneTimer);
      this.#goneTimer = undefined;
      this.#extend(line.ttl_ms);
    } else if (!this.#stopTold) {
      this.#stopTold = true;
      this.#options.onStop(line.reason);
    }
  }

  #extend(ms: number): void {
    // Wall time too: a suspended host stops the monotonic clock.
    this.#deadline = { monotonic: this.#clocks.monotonic() + ms, wall: this.#clocks.wall() + ms };
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#lost('no word from the gateway in time'), ms);
  }

  #isPast(): boolean {
    return this.#clocks.monotonic() > this.#deadline.monotonic || this.#clocks.wall() > this.#deadline.wall;
  }

  #lost(why: string): void {
    if (this.#ended.signal.aborted) return;
    this.stop();
    this.#options.onLost(why);
  }
}
