// Keeps the queue lock of one attempt, counted from the moment a renewal was sent and on the monotonic clock.
// The queue library's own timer counts from the answer and by the wall clock, so a slow Redis or a stepped clock
// would let a lock lapse under a running attempt (P12). It only renews; what follows is the fence's business.

import type { Logger } from 'pino';
import type { RunStates, TakenRun } from '../queue/fleet.js';
import type { Clocks, Fence, LockTiming } from './fence.js';
import { pause, waitFor } from '../waiting/waiting.js';

export interface AttemptLockDependencies {
  readonly runStates: Pick<RunStates, 'renewAttempt'>;
  readonly taken: Pick<TakenRun, 'job' | 'jobId' | 'lockToken' | 'queueName'>;
  readonly attemptToken: string;
  readonly fence: Fence;
  readonly timing: LockTiming;
  readonly clocks: Clocks;
  readonly log: Logger;
  /** Called when the run record says that a stop is wanted; may be called again. */
  readonly onCancelRequested: () => void;
}

export class AttemptLock {
  readonly #deps: AttemptLockDependencies;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(deps: AttemptLockDependencies) {
    this.#deps = deps;
  }

  start(): void {
    this.#running ??= this.#keep();
  }

  /** No renewal is sent after this resolves. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #keep(): Promise<void> {
    const { fence, timing, clocks } = this.#deps;
    const ended = AbortSignal.any([this.#stop.signal, fence.signal]);
    let dueAt = clocks.mono() + timing.renewMs;
    while (!ended.aborted) {
      if (!(await pause(Math.max(0, dueAt - clocks.mono()), ended))) return;
      const sentAt = clocks.mono();
      await this.#renew(sentAt, ended);
      // While Redis is away a renewal is answered late: then the next one is due at once, not a pause later.
      dueAt = sentAt + timing.renewMs;
    }
  }

  async #renew(sentAt: number, ended: AbortSignal): Promise<void> {
    const { runStates, taken, attemptToken, fence, timing, log } = this.#deps;
    try {
      const asked = await waitFor(
        runStates.renewAttempt({
          runId: taken.job.runId,
          attemptToken,
          queue: taken.queueName,
          jobId: taken.jobId,
          lockToken: taken.lockToken,
          lockMs: timing.lockMs,
        }),
        { signal: ended },
      );
      if (asked.outcome !== 'settled') return;
      const answer = asked.value;
      if (answer.outcome !== 'renewed') {
        fence.fall(answer.outcome);
        return;
      }
      fence.extend(sentAt);
      if (answer.cancelRequested) this.#deps.onCancelRequested();
    } catch (error) {
      // Redis refuses (MISCONF, READONLY, OOM) or the connection broke: the fence keeps the time, we keep asking.
      log.warn({ err: error }, 'queue lock not renewed, trying again');
      await pause(Math.min(1_000, timing.renewMs / 4), ended);
    }
  }
}
