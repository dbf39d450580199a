// The dead man's switch as the sandbox sees it (`_fleet/watch`, contract/fleetCalls.ts): a line a second that says
// how long it may go on without another, and a stop as soon as one is wanted. It guards against a sandbox that acts
// on after its executor was frozen, killed or fenced: then the lines end, and the watchdog inside ends the rest.

import { encodeWatchLine, type StopReason } from '../../contract/fleetCalls.js';
import { untilAborted } from '../../waiting/waiting.js';
import { Refusal } from './answers.js';
import type { Call } from './calls.js';

/** Every second at least, says the contract. */
const ALIVE_EVERY_MS = 1_000;
/** The watchdog and the runtime hold one each. */
const STREAMS = 8;

export interface WatchDependencies {
  readonly ttlMs: () => number;
  /** Asked before every line; a fence that has fallen ends the stream from inside. */
  readonly mayAct: () => boolean;
}

export class Watch {
  readonly #deps: WatchDependencies;
  readonly #streams = new Set<Call>();
  #timer: NodeJS.Timeout | undefined;
  #stop: StopReason | undefined;

  constructor(deps: WatchDependencies) {
    this.#deps = deps;
  }

  /** The first stop wins: a run that was cancelled stays cancelled when its credit ends as well. */
  get stopReason(): StopReason | undefined {
    return this.#stop;
  }

  stop(reason: StopReason): void {
    if (this.#stop !== undefined) return;
    this.#stop = reason;
    for (const stream of this.#streams) this.#tellStop(stream);
  }

  /** Serves one stream until its call ends. */
  async serve(call: Call): Promise<void> {
    if (this.#streams.size >= STREAMS)
      throw new Refusal(429, 'TOO_MANY_WATCHES', `A run may watch ${STREAMS} times at once.`);
    call.res.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
    this.#streams.add(call);
    this.#tellAlive(call);
    this.#tellStop(call);
    this.#timer ??= setInterval(() => this.#tick(), ALIVE_EVERY_MS);
    try {
      await untilAborted(call.signal);
    } finally {
      this.#streams.delete(call);
      if (this.#streams.size === 0) {
        clearInterval(this.#timer);
        this.#timer = undefined;
      }
      // In order when the connection still stands: to the sandbox both an end and a cut mean that nobody vouches.
      call.res.end();
    }
  }

  #tick(): void {
    for (const stream of this.#streams) this.#tellAlive(stream);
  }

  #tellAlive(call: Call): void {
    // A sandbox that doesn't read gets no more lines than its pipe takes; they would only gather here.
    if (!this.#deps.mayAct() || call.signal.aborted || call.res.writableNeedDrain) return;
    call.res.write(encodeWatchLine({ t: 'alive', ttl_ms: Math.max(0, Math.floor(this.#deps.ttlMs())) }));
  }

  #tellStop(call: Call): void {
    if (this.#stop === undefined || call.signal.aborted || !this.#deps.mayAct()) return;
    call.res.write(encodeWatchLine({ t: 'stop', reason: this.#stop }));
  }
}
