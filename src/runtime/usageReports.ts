// Metering: compute seconds every minute and at the end, tokens once per model call (protocol/run-control.md 7). It
// guards against reports lost at the end (R18): they are waited for, but not longer than finalize can bear.

import { randomUUID } from 'node:crypto';
import type { TurnUsage } from '../contract/inference.js';
import { waitFor } from '../waiting/waiting.js';
import { CALL_TIMEOUT_MS, type Control, type ControlCall } from './control.js';

const COMPUTE_EVERY_MS = 60_000;
/** protocol/run-control.md 7.2. */
const LAST_REPORTS_MS = 5_000;

export interface UsageReportsOptions {
  readonly runId: string;
  readonly vcpus: number;
  readonly control: Pick<Control, 'call' | 'unexpected'>;
  readonly log: (message: string) => void;
  /** Time since the run was claimed. */
  readonly elapsedMs: () => number;
  readonly lastReportsMs?: number;
}

export class UsageReports {
  readonly #options: UsageReportsOptions;
  readonly #session = randomUUID();
  readonly #outstanding = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #reportedSeconds = 0;
  #computeReports = 0;
  #tokenReports = 0;
  #computing: Promise<void> | undefined;

  constructor(options: UsageReportsOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.#reportCompute(), COMPUTE_EVERY_MS).unref();
  }

  /** Reports one model call; not waited for here. `leaf` is the number of the agent call. */
  tokens(leaf: number, usage: TurnUsage, modelRef: string): void {
    const { runId } = this.#options;
    const { cacheReadTokens, cacheCreationTokens } = usage;
    const body = {
      inputTokens: whole(usage.inputTokens),
      outputTokens: whole(usage.outputTokens),
      model: modelRef,
      identifier: `${runId}:${this.#session}:${leaf}:${this.#tokenReports}`,
      ...(cacheReadTokens === undefined ? {} : { cachedReadTokens: whole(cacheReadTokens) }),
      ...(cacheCreationTokens === undefined ? {} : { cachedWriteTokens: whole(cacheCreationTokens) }),
    };
    this.#tokenReports += 1;
    const report = this.#post({ name: 'usage/tokens', method: 'POST', path: 'usage/tokens', body }).then(
      () => undefined,
    );
    this.#outstanding.add(report);
    void report.finally(() => this.#outstanding.delete(report));
  }

  /** Stops the timer, reports what is left, and waits for all reports, 5 s at most. */
  async finish(): Promise<void> {
    clearInterval(this.#timer);
    const reports = Promise.all([this.#lastCompute(), ...this.#outstanding]);
    const reported = await waitFor(reports, { ms: this.#options.lastReportsMs ?? LAST_REPORTS_MS });
    if (reported.outcome === 'timed_out') this.#options.log('usage: not all reports were answered in time');
  }

  async #lastCompute(): Promise<void> {
    await this.#computing;
    await this.#reportCompute();
  }

  /** A slow report delays the next; a failed one is repeated, larger, under the same identifier. */
  #reportCompute(): Promise<void> {
    this.#computing ??= this.#sendCompute().finally(() => {
      this.#computing = undefined;
    });
    return this.#computing;
  }

  async #sendCompute(): Promise<void> {
    const { runId, vcpus, elapsedMs } = this.#options;
    const runtimeSeconds = Math.round((elapsedMs() / 1_000) * vcpus) - this.#reportedSeconds;
    if (runtimeSeconds < 1) return;
    const identifier = `${runId}:${this.#session}:rt:${this.#computeReports}`;
    if (
      !(await this.#post({
        name: 'usage',
        method: 'POST',
        path: 'usage',
        body: { runtimeSeconds, identifier },
      }))
    )
      return;
    this.#reportedSeconds += runtimeSeconds;
    this.#computeReports += 1;
  }

  async #post(call: ControlCall): Promise<boolean> {
    const { control, log } = this.#options;
    try {
      const answer = await control.call(call, CALL_TIMEOUT_MS.control);
      if (answer.status >= 200 && answer.status < 300) return true;
      log(control.unexpected(call, answer).message);
    } catch (error) {
      log(`${call.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
    return false;
  }
}

function whole(tokens: number | undefined): number {
  return tokens === undefined || !Number.isFinite(tokens) ? 0 : Math.max(0, Math.floor(tokens));
}
