// How long a lane waits after a failure, and when all of them stop waiting. It guards against lanes that sit out their
// back-off after the control plane has come back, and against the opposite: one lane that always fails and is woken by
// every success of the others. The ladder itself (jitter, ceiling 15 s) is the queue's.

import type { Logger } from 'pino';
import type { PlatformError } from '../platform/platformError.js';
import { BACKOFF_CEILING_MS, flushBackoffMs } from '../queue/eventsQueue.js';

export interface BackOffOptions {
  /** Ends the back-off of all lanes. */
  readonly wake: () => Promise<void>;
  readonly log: Logger;
  /** How long a refusal must last before it is believed. Default 30 s. */
  readonly refusalMs?: number | undefined;
  readonly random?: (() => number) | undefined;
  /** Monotonic milliseconds. */
  readonly now?: (() => number) | undefined;
}

/** Failures without a success between them for this long are an outage; below it, back-offs are as short anyway. */
const OUTAGE_MS = 1_000;
/** A lane that was not tried here for so long is another shipper's now; its failures are forgotten. */
const FORGET_MS = 4 * BACKOFF_CEILING_MS;
/** So long a refusal must last before it is believed: giving a run up means that the platform executes it again. */
const REFUSAL_MS = 30_000;
/** Spreads lanes that were all told to come back after the same time. */
const RETRY_AFTER_JITTER = 0.1;

interface Failures {
  readonly count: number;
  readonly at: number;
  readonly refusedSince: number | undefined;
}

export class BackOff {
  readonly #wake: () => Promise<void>;
  readonly #log: Logger;
  readonly #refusalMs: number;
  readonly #random: () => number;
  readonly #now: () => number;
  /** By base URL: the first failure since the last success. */
  readonly #failingSince = new Map<string, number>();
  /** By run, the longest untouched first: failures since its last success, and when it was first refused. */
  readonly #failures = new Map<string, Failures>();

  constructor(options: BackOffOptions) {
    this.#wake = options.wake;
    this.#log = options.log;
    this.#refusalMs = options.refusalMs ?? REFUSAL_MS;
    this.#random = options.random ?? Math.random;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Notes a failure. @returns how long its lane waits, in ms; `Retry-After` is honoured up to 15 s. */
  failed(baseUrl: string, runId: string, error: PlatformError): number {
    if (!this.#failingSince.has(baseUrl)) {
      this.#failingSince.set(baseUrl, this.#now());
      this.#log.warn({ runId, reason: error.message, baseUrl }, 'events are not taken; lanes are kept');
    }
    const askedMs = (error.retryAfterMs ?? 0) * (1 + RETRY_AFTER_JITTER * this.#random());
    const ownMs = flushBackoffMs(this.#countFailure(runId), this.#random);
    return Math.min(BACKOFF_CEILING_MS, Math.max(askedMs, ownMs));
  }

  /** Notes that the run's token is refused. @returns how long its lane waits, in ms; null: it is meant. */
  refused(runId: string): number | null {
    const since = this.#failures.get(runId)?.refusedSince ?? this.#now();
    if (this.#now() - since >= this.#refusalMs) {
      this.#failures.delete(runId);
      return null;
    }
    return flushBackoffMs(this.#countFailure(runId, since), this.#random);
  }

  /** Notes a success; the first one after an outage wakes every lane. */
  succeeded(baseUrl: string, runId: string): void {
    this.#failures.delete(runId);
    const since = this.#failingSince.get(baseUrl);
    if (since === undefined) return;
    this.#failingSince.delete(baseUrl);
    const outageMs = Math.round(this.#now() - since);
    if (outageMs < OUTAGE_MS) return;
    this.#log.info({ baseUrl, outageMs }, 'events are taken again; lanes are woken');
    this.#wake().catch((error: unknown) => {
      this.#log.warn(
        { reason: error instanceof Error ? error.message : String(error) },
        'lanes were not woken; each comes back by itself',
      );
    });
  }

  #countFailure(runId: string, refusedSince?: number): number {
    const now = this.#now();
    for (const [oldest, { at }] of this.#failures) {
      if (now - at < FORGET_MS) break;
      this.#failures.delete(oldest);
    }
    const count = (this.#failures.get(runId)?.count ?? 0) + 1;
    this.#failures.delete(runId);
    this.#failures.set(runId, { count, at: now, refusedSince });
    return count;
  }
}
