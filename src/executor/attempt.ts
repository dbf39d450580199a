// One attempt of one run, from the taken job to the freed slot. The order of steps is what keeps a run from being
// executed twice or lost: token before lease, lease before sandbox, finalize into the lane before the job is
// completed, and nothing at all once the fence has fallen. What a step does lives elsewhere.

import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import type { StopReason } from '../contract/fleetCalls.js';
import type { RunClaim } from '../contract/runControl.js';
import type { PlatformHttp } from '../platform/http.js';
import { RunClient } from '../platform/runClient.js';
import type { RunCredential } from '../queue/credentials.js';
import type { Fleet } from '../queue/fleet.js';
import type { TakenRun } from '../queue/runsQueue.js';
import { SecretSet } from '../redaction/secretSet.js';
import type { AttemptEnd } from './endReason.js';
import { Fence, type Clocks, type FenceReason, type LockTiming } from './fence.js';
import type { Gateway } from './gateway/server.js';
import type { LeaseLinger } from './leaseLinger.js';
import { AttemptLock } from './lock.js';
import { claimRunLease, type RunLease, type RunLeaseTiming } from './runLease.js';
import type { RuntimeFiles } from './sandbox/runtimeFiles.js';
import type { SandboxKind } from './sandbox/sandbox.js';
import { Settlement, type AttemptResult } from './settlement.js';
import type { StartTrouble } from './startTrouble.js';
import { SandboxStay } from './stay.js';
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
  readonly #settlement: Settlement;
  readonly #stopWanted: Promise<StopReason>;
  #wantStop: (reason: StopReason) => void = () => undefined;

  constructor(deps: AttemptDependencies, taken: TakenRun) {
    this.#deps = deps;
    this.#taken = taken;
    this.#fence = new Fence(taken.fetchedAtMonoMs, deps.lockTiming, deps.clocks);
    this.#log = deps.log.child({ runId: taken.job.runId });
    this.#settlement = new Settlement({
      ...deps,
      taken,
      attemptToken: this.#token,
      fence: this.#fence,
      log: this.#log,
    });
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
    if (credential?.leaseId !== leaseId) return this.#settlement.stepBack('the claim is superseded or over');
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
        return this.#settlement.stepBack(
          'an earlier attempt has finalized the run; it only has to be shipped',
        );
      case 'superseded':
      case 'done':
      case 'lease_lost':
      case 'unknown':
        return this.#settlement.stepBack(`the claim is ${started.outcome}`);
    }
  }

  async #withLock(credential: RunCredential, started: StartedAttempt): Promise<AttemptResult> {
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
      if (claimed.outcome === 'fenced') return await this.#settlement.fenced(claimed.reason);
      if (claimed.outcome === 'ended') return await this.#settlement.ended(claimed.end, started.restarts);
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
      return await this.#settlement.of(await stay.untilOver(), started.restarts);
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
}
