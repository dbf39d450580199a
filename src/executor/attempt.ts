// One attempt of one run, from the taken job to the freed slot. The order of steps is what keeps a run from being
// executed twice or lost: token before lease, lease before sandbox, finalize into the lane before the job is
// completed, and nothing at all once the fence has fallen. What a step does lives elsewhere.

import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { stoppedOutput, type StopReason } from '../contract/fleetCalls.js';
import type { RunClaim } from '../contract/runControl.js';
import type { PlatformHttp } from '../platform/http.js';
import { RunClient } from '../platform/runClient.js';
import type { RunCredential } from '../queue/credentials.js';
import type { Fleet } from '../queue/fleet.js';
import type { TakenRun } from '../queue/runsQueue.js';
import { SecretSet } from '../redaction/secretSet.js';
import { countsAsAttempt, finalizeCode, tryAgainInMs, type AttemptEnd } from './endReason.js';
import { Fence, type Clocks, type FenceReason, type LockTiming } from './fence.js';
import type { LaneFinalize } from './gateway/finalize.js';
import type { Gateway } from './gateway/server.js';
import type { LeaseLinger } from './leaseLinger.js';
import { AttemptLock } from './lock.js';
import { claimRunLease, type RunLease, type RunLeaseTiming } from './runLease.js';
import type { RuntimeFiles } from './sandbox/runtimeFiles.js';
import type { SandboxKind } from './sandbox/sandbox.js';
import type { StartTrouble } from './startTrouble.js';
import { SandboxStay, type StayEnd } from './stay.js';
import { pause } from '../waiting/waiting.js';
import type { WorkDirectory } from './workspace.js';

/** What all attempts of an executor share. */
export interface AttemptDependencies {
  readonly fleet: Fleet;
  readonly http: PlatformHttp;
  readonly gateway: Gateway;
  readonly sandboxes: SandboxKind;
  readonly runtimeFiles: RuntimeFiles;
  readonly workDirectory: WorkDirectory;
  readonly linger: LeaseLinger;
  readonly trouble: StartTrouble;
  readonly executorId: string;
  readonly log: Logger;
  readonly clocks: Clocks;
  readonly lockTiming: LockTiming;
  readonly leaseTiming: RunLeaseTiming;
  /** How long a run that is told to stop may take before the executor finalizes it. */
  readonly stopGraceMs: number;
  /** How many attempts of one claim may end without a finalize by the run's own doing. */
  readonly maxAttempts: number;
  /** The environment that is forwarded into sandboxes (protocol/pool.md 12.2 picks from it). */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Node for the program; `null` is the one that runs the runtime. */
  readonly nodePath: string | null;
  readonly debug: boolean;
}

export type AttemptResult =
  | { readonly outcome: 'finalized'; readonly status: LaneFinalize['status'] }
  /** The job was for nothing: the claim is superseded, lost, finalized by an earlier attempt, or over. */
  | { readonly outcome: 'stepped_back'; readonly why: string }
  | { readonly outcome: 'handed_back'; readonly end: AttemptEnd }
  | { readonly outcome: 'fenced'; readonly reason: FenceReason };

interface StartedAttempt {
  readonly attempt: number;
  readonly restarts: number;
  readonly laneCursor: number;
}

/** How long the executor goes on asking for the run lease while the control plane can't be reached. */
const CLAIM_PATIENCE_MS = 60_000;
const CLAIM_RETRY_MS = 2_000;

export class Attempt {
  readonly #deps: AttemptDependencies;
  readonly #taken: TakenRun;
  readonly #fence: Fence;
  readonly #token = randomBytes(16).toString('base64url');
  readonly #log: Logger;
  readonly #stopWanted: Promise<StopReason>;
  #wantStop: (reason: StopReason) => void = () => undefined;
  /** Starts of this claim before this one. */
  #restarts = 0;

  constructor(deps: AttemptDependencies, taken: TakenRun) {
    this.#deps = deps;
    this.#taken = taken;
    this.#fence = new Fence(taken.fetchedAtMonoMs, deps.lockTiming, deps.clocks);
    this.#log = deps.log.child({ runId: taken.job.runId });
    this.#stopWanted = new Promise((resolve) => {
      this.#wantStop = resolve;
    });
  }

  get runId(): string {
    return this.#taken.job.runId;
  }

  /** Ends the attempt at once so that another executor starts the next one: the drain's last means. */
  handBack(): void {
    this.#fence.fall('handed_back');
  }

  /** Never throws: what goes wrong is an outcome, and the job is left to its lock when nothing better is safe. */
  async run(): Promise<AttemptResult> {
    try {
      return await this.#start();
    } catch (error) {
      this.#log.error(
        { err: error },
        'attempt failed; its queue lock is left to lapse and the run starts again',
      );
      this.#deps.trouble.failed(this.runId);
      this.#fence.fall('lock_expiring');
      return { outcome: 'fenced', reason: 'lock_expiring' };
    } finally {
      this.#fence.retire();
    }
  }

  async #start(): Promise<AttemptResult> {
    const { runId, leaseId } = this.#taken.job;
    const { fleet, executorId } = this.#deps;
    const credential = await fleet.credentials.run(runId);
    if (credential?.leaseId !== leaseId) return this.#stepBack('the claim is superseded or over');
    const started = await fleet.runStates.startAttempt({
      runId,
      leaseId,
      executorId,
      attemptToken: this.#token,
      // Sent again after a reconnect it may arrive when the lock is a successor's: then it must not fence that one.
      lock: this.#taken,
    });
    switch (started.outcome) {
      case 'started':
        return this.#withLock(credential, started);
      case 'finalizing':
        await fleet.flushes.add(runId);
        return this.#stepBack('an earlier attempt has finalized the run; it only has to be shipped');
      case 'superseded':
      case 'done':
      case 'lease_lost':
      case 'unknown':
        return this.#stepBack(`the claim is ${started.outcome}`);
    }
  }

  async #withLock(credential: RunCredential, started: StartedAttempt): Promise<AttemptResult> {
    this.#restarts = started.restarts;
    this.#log.info({ attempt: started.attempt, workflow: credential.workflowId }, 'attempt started');
    const lock = new AttemptLock({
      ...this.#deps,
      runStates: this.#deps.fleet.runStates,
      taken: this.#taken,
      attemptToken: this.#token,
      fence: this.#fence,
      timing: this.#deps.lockTiming,
      log: this.#log,
      onCancelRequested: () => this.#wantStop('cancelled'),
    });
    lock.start();
    try {
      const client = new RunClient(this.#deps.http, credential);
      const claimed = await this.#claimLease(client, credential.workerId);
      if (claimed.outcome === 'fenced') return await this.#settleFenced(claimed.reason);
      if (claimed.outcome === 'ended') return await this.#settleEnded(claimed.end);
      const { lease, claim } = claimed;
      lease.start({
        onLost: (why) => {
          this.#log.warn({ why }, 'run lease lost');
          this.#fence.fall('lease_lost');
        },
        onStop: (reason) => this.#wantStop(reason),
      });
      let result: AttemptResult | undefined;
      try {
        result = await this.#execute(credential, client, lease, claim, started);
        return result;
      } finally {
        if (result?.outcome === 'finalized')
          this.#deps.linger.add({ runId: this.runId, leaseId: credential.leaseId, lease });
        else await lease.stop();
      }
    } finally {
      await lock.stop();
    }
  }

  async #claimLease(
    client: RunClient,
    workerId: string,
  ): Promise<
    | { readonly outcome: 'claimed'; readonly lease: RunLease; readonly claim: RunClaim }
    | { readonly outcome: 'ended'; readonly end: AttemptEnd }
    | { readonly outcome: 'fenced'; readonly reason: FenceReason }
  > {
    const { clocks, leaseTiming } = this.#deps;
    const giveUpAt = clocks.mono() + CLAIM_PATIENCE_MS;
    for (;;) {
      const answer = await claimRunLease(
        { client, workerId, timing: leaseTiming, clocks, log: this.#log },
        this.#fence.signal,
      );
      if (answer.outcome === 'claimed') return answer;
      if (answer.outcome === 'not_ours')
        return { outcome: 'ended', end: { reason: 'lease_lost', evidence: answer.why } };
      if (!this.#fence.check()) return { outcome: 'fenced', reason: this.#fence.reason ?? 'lock_expiring' };
      if (clocks.mono() >= giveUpAt)
        return {
          outcome: 'ended',
          end: { reason: 'control_plane_unreachable', evidence: answer.error.message },
        };
      this.#log.warn({ err: answer.error }, 'run lease not claimed, trying again');
      await pause(CLAIM_RETRY_MS, this.#fence.signal);
    }
  }

  async #execute(
    credential: RunCredential,
    client: RunClient,
    lease: RunLease,
    claim: RunClaim,
    started: StartedAttempt,
  ): Promise<AttemptResult> {
    const secrets = new SecretSet();
    secrets.add(credential.runToken);
    secrets.add(credential.apiToken);
    const stay = new SandboxStay({
      ...this.#deps,
      log: this.#log,
      credential,
      client,
      lease,
      // The platform counts claims, we count starts; a successor's cursors go on behind what waits in the lane.
      claim: {
        ...claim,
        run: { ...claim.run, attempt: claim.run.attempt + started.restarts },
        lastEventCursor: Math.max(claim.lastEventCursor, started.laneCursor),
      },
      attempt: started.attempt,
      attemptToken: this.#token,
      fence: this.#fence,
      fencedGraceMs: this.#deps.lockTiming.marginMs / 2,
      secrets,
      stopWanted: this.#stopWanted,
      onRunning: () => this.#noteRunning(),
      onFinalized: () => lease.stopWatching(),
    });
    try {
      return await this.#settle(await stay.untilOver());
    } finally {
      await stay.cleanUp();
    }
  }

  /** A time for people and the phase of the next heartbeat: worth one try, never worth the run. */
  #noteRunning(): void {
    const { fleet, clocks, trouble } = this.#deps;
    trouble.worked();
    fleet.runStates
      .setRunning(this.runId, this.#token, clocks.wall())
      .catch((error: unknown) => this.#log.warn({ err: error }, 'the start of a run was not recorded'));
  }

  async #settle(end: StayEnd): Promise<AttemptResult> {
    switch (end.kind) {
      case 'finalized':
        return this.#complete(end.status);
      case 'stopped':
        return this.#finalize({ status: 'failed', output: stoppedOutput(end.reason) });
      case 'ended':
        return this.#settleEnded(end.end);
      case 'fenced':
        return this.#settleFenced(end.reason);
      case 'unproven':
        return this.#settleUnproven(end.evidence);
    }
  }

  /** Whatever ended the attempt: handing the run on now could start it beside what is left of it (P33). */
  async #settleUnproven(evidence: string): Promise<AttemptResult> {
    this.#log.error(
      { evidence },
      'a sandbox may still live; the run starts again only once its lock has lapsed',
    );
    const reason = this.#fence.reason ?? 'sandbox_unproven';
    return this.#settleFenced(reason === 'handed_back' ? 'sandbox_unproven' : reason);
  }

  async #settleEnded(end: AttemptEnd): Promise<AttemptResult> {
    const { fleet, maxAttempts, trouble } = this.#deps;
    const mayBeTheRun = end.reason !== 'sandbox_start_failed' || trouble.failed(this.runId);
    const counts = countsAsAttempt(end.reason) && mayBeTheRun;
    const recorded = await fleet.runStates.endAttempt(this.runId, this.#token, {
      endReason: end.reason,
      evidence: end.evidence,
      counts,
    });
    if (recorded.outcome === 'foreign_attempt') return this.#settleFenced('foreign_attempt');
    if (end.reason === 'lease_lost') {
      await fleet.runStates.markLeaseLost(this.runId, this.#taken.job.leaseId);
      return this.#stepBack(end.evidence);
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
    const delayMs = tryAgainInMs(this.#restarts);
    this.#log.warn(
      { reason: end.reason, evidence: end.evidence, delayMs },
      'attempt ended, the run is tried again',
    );
    if ((await this.#taken.handBack(delayMs)) === 'not_owner') return this.#settleFenced('lock_lost');
    return { outcome: 'handed_back', end };
  }

  async #settleFenced(reason: FenceReason): Promise<AttemptResult> {
    this.#fence.fall(reason);
    if (reason === 'handed_back') {
      const end: AttemptEnd = { reason: 'handed_back', evidence: 'the executor drains' };
      await this.#deps.fleet.runStates.endAttempt(this.runId, this.#token, {
        endReason: end.reason,
        counts: false,
      });
      await this.#taken.handBack();
      this.#log.info('attempt handed back');
      return { outcome: 'handed_back', end };
    }
    if (reason === 'lease_lost')
      await this.#deps.fleet.runStates.markLeaseLost(this.runId, this.#taken.job.leaseId);
    this.#log.warn({ reason }, 'attempt fenced: it has stopped and leaves its job alone');
    return { outcome: 'fenced', reason };
  }

  /** The executor's own word on the run, as the lane's last entry like any other. */
  async #finalize(body: LaneFinalize): Promise<AttemptResult> {
    if (!this.#fence.check()) return this.#settleFenced(this.#fence.reason ?? 'lock_expiring');
    const { fleet } = this.#deps;
    const appended = await fleet.lanes.appendFinalize(this.runId, this.#token, JSON.stringify(body));
    if (appended.outcome === 'foreign_attempt') return this.#settleFenced('foreign_attempt');
    if (appended.needsFlush) await fleet.flushes.add(this.runId);
    return this.#complete(body.status);
  }

  /** What is in the lane is final: a lost job lock changes nothing, a successor finds the finalize there. */
  async #complete(status: LaneFinalize['status']): Promise<AttemptResult> {
    const completed = await this.#taken.complete();
    if (completed === 'not_owner')
      this.#log.info('job lock was gone at completion; the lane holds the finalize');
    this.#log.info({ status }, 'attempt finished');
    return { outcome: 'finalized', status };
  }

  async #stepBack(why: string): Promise<AttemptResult> {
    await this.#taken.complete();
    this.#log.info({ why }, 'stepped back');
    return { outcome: 'stepped_back', why };
  }
}
