// What follows for a run from how its attempt ended: its finalize, another try, another owner, or nothing at all. The
// order guards what can't be taken back: the record is asked first, the lane has the finalize before the job goes, and an
// attempt that has lost its run touches the job no more.

import type { Logger } from 'pino';
import { stoppedOutput } from '../contract/fleetCalls.js';
import type { Fleet } from '../queue/fleet.js';
import type { TakenRun } from '../queue/runsQueue.js';
import { countsAsAttempt, finalizeCode, isStartFailure, tryAgainInMs, type AttemptEnd } from './endReason.js';
import type { Fence, FenceReason } from './fence.js';
import type { LaneFinalize } from './gateway/finalize.js';
import type { StartTrouble } from './startTrouble.js';
import type { StayEnd } from './stay.js';

export type AttemptResult =
  | { readonly outcome: 'finalized'; readonly status: LaneFinalize['status'] }
  /** The job was for nothing: the claim is superseded, lost, finalized by an earlier attempt, or over. */
  | { readonly outcome: 'stepped_back'; readonly why: string }
  | { readonly outcome: 'handed_back'; readonly end: AttemptEnd }
  | { readonly outcome: 'fenced'; readonly reason: FenceReason };

export interface SettlementDependencies {
  readonly fleet: Fleet;
  readonly trouble: StartTrouble;
  /** How many attempts of one claim may end without a finalize by the run's own doing. */
  readonly maxAttempts: number;
  readonly taken: TakenRun;
  readonly attemptToken: string;
  readonly fence: Fence;
  readonly log: Logger;
}

export class Settlement {
  readonly #deps: SettlementDependencies;

  constructor(deps: SettlementDependencies) {
    this.#deps = deps;
  }

  get #log(): Logger {
    return this.#deps.log;
  }

  get #runId(): string {
    return this.#deps.taken.job.runId;
  }

  /** @param restarts starts of this claim before the one that ended. */
  async of(end: StayEnd, restarts: number): Promise<AttemptResult> {
    switch (end.kind) {
      case 'finalized':
        return this.#complete(end.status);
      case 'stopped':
        return this.#finalize({ status: 'failed', output: stoppedOutput(end.reason) });
      case 'ended':
        return this.ended(end.end, restarts);
      case 'fenced':
        return this.fenced(end.reason);
      case 'unproven':
        return this.#unproven(end.evidence);
    }
  }

  /** Whatever ended the attempt: handing the run on now could start it beside what is left of it (P33). */
  async #unproven(evidence: string): Promise<AttemptResult> {
    this.#log.error(
      { evidence },
      'a sandbox may still live; the run starts again only once its lock has lapsed',
    );
    const reason = this.#deps.fence.reason ?? 'sandbox_unproven';
    return this.fenced(reason === 'handed_back' ? 'sandbox_unproven' : reason);
  }

  /** Without a finalize. */
  async ended(end: AttemptEnd, restarts: number): Promise<AttemptResult> {
    const { fleet, maxAttempts, trouble } = this.#deps;
    const mayBeTheRun = !isStartFailure(end.reason) || trouble.failed(this.#runId);
    const counts = countsAsAttempt(end.reason) && mayBeTheRun;
    const recorded = await fleet.runStates.endAttempt(this.#runId, this.#deps.attemptToken, {
      endReason: end.reason,
      evidence: end.evidence,
      counts,
    });
    if (recorded.outcome === 'foreign_attempt') return this.fenced('foreign_attempt');
    if (end.reason === 'lease_lost') {
      await fleet.runStates.markLeaseLost(this.#runId, this.#deps.taken.job.leaseId);
      return this.stepBack(end.evidence);
    }
    if (counts && recorded.counted >= maxAttempts) {
      this.#log.error(
        { reason: end.reason, evidence: end.evidence },
        'attempt ended, the last one: run is failed',
      );
      const code = finalizeCode(end.reason);
      const message = `The run's sandbox ended ${recorded.counted} times without a result. Last: ${end.evidence}`;
      return this.#finalize({ status: 'failed', output: { error: { code, message } } });
    }
    const delayMs = tryAgainInMs(restarts);
    this.#log.warn(
      { reason: end.reason, evidence: end.evidence, delayMs },
      'attempt ended, the run is tried again',
    );
    if ((await this.#deps.taken.handBack(delayMs)) === 'not_owner') return this.fenced('lock_lost');
    return { outcome: 'handed_back', end };
  }

  /** Its run is lost, or given away. */
  async fenced(reason: FenceReason): Promise<AttemptResult> {
    this.#deps.fence.fall(reason);
    if (reason === 'handed_back') {
      const end: AttemptEnd = { reason: 'handed_back', evidence: 'the executor drains' };
      await this.#deps.fleet.runStates.endAttempt(this.#runId, this.#deps.attemptToken, {
        endReason: end.reason,
        counts: false,
      });
      await this.#deps.taken.handBack();
      this.#log.info('attempt handed back');
      return { outcome: 'handed_back', end };
    }
    if (reason === 'lease_lost')
      await this.#deps.fleet.runStates.markLeaseLost(this.#runId, this.#deps.taken.job.leaseId);
    this.#log.warn({ reason }, 'attempt fenced: it has stopped and leaves its job alone');
    return { outcome: 'fenced', reason };
  }

  /** The executor's own word on the run, as the lane's last entry like any other. */
  async #finalize(body: LaneFinalize): Promise<AttemptResult> {
    if (!this.#deps.fence.check()) return this.fenced(this.#deps.fence.reason ?? 'lock_expiring');
    const { fleet } = this.#deps;
    const appended = await fleet.lanes.appendFinalize(
      this.#runId,
      this.#deps.attemptToken,
      JSON.stringify(body),
    );
    if (appended.outcome === 'foreign_attempt') return this.fenced('foreign_attempt');
    if (appended.needsFlush) await fleet.flushes.add(this.#runId);
    return this.#complete(body.status);
  }

  /** What is in the lane is final: a lost job lock changes nothing, a successor finds the finalize there. */
  async #complete(status: LaneFinalize['status']): Promise<AttemptResult> {
    const completed = await this.#deps.taken.complete();
    if (completed === 'not_owner')
      this.#log.info('job lock was gone at completion; the lane holds the finalize');
    this.#log.info({ status }, 'attempt finished');
    return { outcome: 'finalized', status };
  }

  /** Its job was for nothing. */
  async stepBack(why: string): Promise<AttemptResult> {
    await this.#deps.taken.complete();
    this.#log.info({ why }, 'stepped back');
    return { outcome: 'stepped_back', why };
  }
}
