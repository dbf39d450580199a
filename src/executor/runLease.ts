// The run lease of one attempt: claimed, renewed and watched by the executor, so that a sandbox that hangs, downloads
// or is frozen can't lose it, and the platform is asked once for a run and not once for a process (R20).
// It also carries the platform's wish to stop (cancel, credit). Losing the lease is reported, acting on it is the
// fence's business.

import type { Logger } from 'pino';
import { RUN_LEASE_SECONDS } from '../contract/callPolicy.js';
import type { StopReason } from '../contract/fleetCalls.js';
import type { RunClaim } from '../contract/runControl.js';
import { CALL_DEADLINE_MS, type RunClient } from '../platform/runClient.js';
import type { Clocks } from './fence.js';
import { pause } from '../waiting/waiting.js';

export interface RunLeaseTiming {
  /** The longest pause between renewals; a shorter lease is renewed at a third of what is left (R22). */
  readonly renewMs: number;
  readonly cancelPollMs: number;
  readonly creditPollMs: number;
}

export const DEFAULT_RUN_LEASE_TIMING: RunLeaseTiming = {
  renewMs: 60_000,
  cancelPollMs: 5_000,
  creditPollMs: 60_000,
};

const SHORTEST_RENEW_MS = 500;

export interface RunLeaseDependencies {
  readonly client: Pick<RunClient, 'claim' | 'renew' | 'cancel' | 'credit'>;
  readonly workerId: string;
  readonly timing: RunLeaseTiming;
  readonly clocks: Clocks;
  readonly log: Logger;
}

export type LeaseClaim =
  | { readonly outcome: 'claimed'; readonly lease: RunLease; readonly claim: RunClaim }
  /** Somebody else holds it, the run is over, or our token is no longer good for it: step back. */
  | { readonly outcome: 'not_ours'; readonly why: string }
  | { readonly outcome: 'unreachable'; readonly error: Error };

/** Asks once (the client retries what is transient); the caller decides how long to go on asking. */
export async function claimRunLease(deps: RunLeaseDependencies, signal: AbortSignal): Promise<LeaseClaim> {
  const sentAt = deps.clocks.mono();
  const answer = await deps.client.claim({
    workerId: deps.workerId,
    leaseSeconds: RUN_LEASE_SECONDS,
    signal,
  });
  switch (answer.outcome) {
    case 'claimed':
      return {
        outcome: 'claimed',
        claim: answer.claim,
        lease: new RunLease(deps, sentAt, grantedMs(answer.claim.leaseUntil, answer.serverDateMs)),
      };
    case 'held':
      return { outcome: 'not_ours', why: 'another worker holds the run lease, or the run is over' };
    case 'refused':
      if (answer.status === 401 || answer.status === 403 || answer.status === 404)
        return { outcome: 'not_ours', why: `the run token was refused with ${answer.status}` };
      return { outcome: 'unreachable', error: answer.error };
    case 'failed':
      return { outcome: 'unreachable', error: answer.error };
  }
}

/** What a lease grants by the server's own clock; a missing or odd figure counts as what was asked for. */
function grantedMs(leaseUntilMs: number | undefined, serverDateMs: number | null): number {
  const longest = RUN_LEASE_SECONDS * 1_000;
  if (leaseUntilMs === undefined || serverDateMs === null) return longest;
  const granted = leaseUntilMs - serverDateMs;
  return granted > 0 ? Math.min(longest, granted) : longest;
}

export interface RunLeaseEvents {
  /** The lease went to another worker, or ran out without a renewal. Called at most once. */
  onLost(why: string): void;
  /** Called at most once. */
  onStop(reason: StopReason): void;
}

export class RunLease {
  readonly #deps: RunLeaseDependencies;
  readonly #ended = new AbortController();
  readonly #watchEnded = new AbortController();
  #renewedAt: number;
  #grantedMs: number;
  #loops: readonly Promise<void>[] = [];

  constructor(deps: RunLeaseDependencies, renewedAtMonoMs: number, granted: number) {
    this.#deps = deps;
    this.#renewedAt = renewedAtMonoMs;
    this.#grantedMs = granted;
  }

  /** What is left, in ms, by the monotonic clock and counted from when the granted request was sent. */
  remainingMs(): number {
    return Math.max(0, this.#renewedAt + this.#grantedMs - this.#deps.clocks.mono());
  }

  start(events: RunLeaseEvents): void {
    if (this.#loops.length > 0) return;
    const watched = AbortSignal.any([this.#ended.signal, this.#watchEnded.signal]);
    const stop = (reason: StopReason): void => {
      this.stopWatching();
      events.onStop(reason);
    };
    this.#loops = [
      this.#renewals(events),
      this.#watchCancel(watched, stop),
      this.#watchCredit(watched, stop),
    ];
  }

  /** The run has been finalized or is stopping: only the lease itself matters from here. */
  stopWatching(): void {
    this.#watchEnded.abort();
  }

  async stop(): Promise<void> {
    this.#ended.abort();
    await Promise.all(this.#loops);
  }

  async #renewals(events: RunLeaseEvents): Promise<void> {
    const { timing, clocks, client, workerId, log } = this.#deps;
    const signal = this.#ended.signal;
    for (;;) {
      const untilDue = Math.max(SHORTEST_RENEW_MS, Math.min(timing.renewMs, this.remainingMs() / 3));
      if (!(await pause(untilDue, signal))) return;
      const sentAt = clocks.mono();
      const answer = await client.renew({
        workerId,
        leaseSeconds: RUN_LEASE_SECONDS,
        signal,
        // A loss must be noticed when it happens, and not after all the tries of a call.
        deadlineMs: Math.min(CALL_DEADLINE_MS, Math.max(SHORTEST_RENEW_MS, this.remainingMs())),
      });
      if (signal.aborted) return;
      if (answer.outcome === 'renewed') {
        this.#renewedAt = sentAt;
        this.#grantedMs = grantedMs(answer.leaseUntil, answer.serverDateMs);
        continue;
      }
      if (answer.outcome === 'lost') {
        events.onLost('a renewal of the run lease was answered 409');
        return;
      }
      if (this.remainingMs() === 0) {
        events.onLost('no renewal of the run lease succeeded for its whole time');
        return;
      }
      log.warn({ err: answer.error }, 'run lease not renewed, trying again');
    }
  }

  async #watchCancel(signal: AbortSignal, stop: (reason: StopReason) => void): Promise<void> {
    while (await pause(this.#deps.timing.cancelPollMs, signal)) {
      const answer = await this.#deps.client.cancel({ signal });
      if (signal.aborted) return;
      if (answer.outcome === 'answered' && answer.cancelRequested) {
        stop('cancelled');
        return;
      }
      if (answer.outcome === 'failed')
        this.#deps.log.debug({ err: answer.error }, 'cancel check failed, trying again');
    }
  }

  async #watchCredit(signal: AbortSignal, stop: (reason: StopReason) => void): Promise<void> {
    while (await pause(this.#deps.timing.creditPollMs, signal)) {
      const answer = await this.#deps.client.credit({ signal });
      if (signal.aborted) return;
      if (answer.outcome === 'answered' && !answer.funded) {
        stop('credit_exhausted');
        return;
      }
      if (answer.outcome === 'failed')
        this.#deps.log.debug({ err: answer.error }, 'credit check failed, trying again');
    }
  }
}
