// One stay of a run in a sandbox: directories, door, sandbox, and the watch over all of them until no process of the
// sandbox is left. It tells how the stay ended by evidence; what follows for the run is the attempt's decision.
// Cleaning up is a step of its own, because the job must be settled before anything slow or fallible is removed.

import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { StopReason } from '../contract/fleetCalls.js';
import type { HandOver } from '../contract/handOver.js';
import type { RunClaim } from '../contract/runControl.js';
import type { PlatformHttp } from '../platform/http.js';
import type { RunClient } from '../platform/runClient.js';
import type { RunCredential } from '../queue/credentials.js';
import type { Fleet } from '../queue/fleet.js';
import { redact } from '../redaction/redact.js';
import type { SecretSet } from '../redaction/secretSet.js';
import { readSandboxEnd, type AttemptEnd } from './endReason.js';
import type { Fence, FenceReason } from './fence.js';
import { Door } from './gateway/door.js';
import type { LaneFinalize } from './gateway/finalize.js';
import type { Gateway, OpenDoor } from './gateway/server.js';
import type { RunLease } from './runLease.js';
import { sandboxEnvironment } from './sandbox/environment.js';
import type { RuntimeFiles } from './sandbox/runtimeFiles.js';
import {
  SandboxStartError,
  SandboxSurvivorsError,
  type Sandbox,
  type SandboxExit,
  type SandboxKind,
} from './sandbox/sandbox.js';
import { pause, untilAborted } from '../waiting/waiting.js';
import type { RunDirectories, WorkDirectory } from './workspace.js';

/** How long a sandbox may take to leave by itself once its run is finalized. */
const LEAVE_MS = 5_000;
/** What the executor grants beyond the grace that the runtime keeps for its program. */
const STOP_SLACK_MS = 5_000;
const STDERR_TAIL_LINES = 20;

export type StayEnd =
  | { readonly kind: 'finalized'; readonly status: LaneFinalize['status'] }
  /** The run was told to stop and its sandbox left, or was ended, without a finalize. */
  | { readonly kind: 'stopped'; readonly reason: StopReason }
  | { readonly kind: 'ended'; readonly end: AttemptEnd }
  | { readonly kind: 'fenced'; readonly reason: FenceReason }
  /** Something of the sandbox may still live: nothing may start in its place now. */
  | { readonly kind: 'unproven'; readonly evidence: string };

export interface StayDependencies {
  readonly fleet: Fleet;
  readonly http: PlatformHttp;
  readonly gateway: Gateway;
  readonly sandboxes: SandboxKind;
  readonly runtimeFiles: RuntimeFiles;
  readonly workDirectory: WorkDirectory;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly nodePath: string | null;
  readonly stopGraceMs: number;
  readonly debug: boolean;
  readonly log: Logger;
  readonly credential: RunCredential;
  readonly client: RunClient;
  readonly lease: RunLease;
  readonly claim: RunClaim;
  readonly attempt: number;
  readonly attemptToken: string;
  readonly fence: Fence;
  /** Half of what the fence leaves for the end: SIGTERM first, SIGKILL after this long. */
  readonly fencedGraceMs: number;
  readonly secrets: SecretSet;
  readonly stopWanted: Promise<StopReason>;
  /** The first row has come. */
  readonly onRunning: () => void;
  /** The lane holds the finalize. */
  readonly onFinalized: () => void;
}

export class SandboxStay {
  readonly #deps: StayDependencies;
  readonly #runId: string;
  readonly #stderrTail: string[] = [];
  #directories: RunDirectories | undefined;
  #openDoor: OpenDoor | undefined;
  #sandbox: Sandbox | undefined;
  #stopReason: StopReason | undefined;

  constructor(deps: StayDependencies) {
    this.#deps = deps;
    this.#runId = deps.credential.runId;
  }

  /** From nothing to "no process of it is left". Throws only when the gateway or Redis do. */
  async untilOver(): Promise<StayEnd> {
    const door = this.#makeDoor();
    let sandbox: Sandbox;
    try {
      sandbox = await this.#start(door);
    } catch (error) {
      const evidence = error instanceof Error ? error.message : String(error);
      if (error instanceof SandboxSurvivorsError) return { kind: 'unproven', evidence };
      if (!this.#deps.fence.check()) return this.#fenced();
      const reason = error instanceof SandboxStartError ? error.reason : 'sandbox_start_failed';
      return { kind: 'ended', end: { reason, evidence: this.#redacted(evidence) } };
    }
    const exit = await this.#watch(door, sandbox);
    // A finalize that is being appended while the sandbox exits must have reached the lane, or never will.
    door.close();
    await door.settled();
    return this.#readEnd(door, exit);
  }

  /** Never throws: the run is settled by now, and what can't be removed is only reported. */
  async cleanUp(): Promise<void> {
    const stopped = await Promise.allSettled([this.#sandbox?.stop({ graceMs: 0 }), this.#openDoor?.close()]);
    for (const each of stopped)
      if (each.status === 'rejected')
        this.#deps.log.error({ err: each.reason as unknown }, 'sandbox not cleaned up');
    const removal = await this.#directories?.remove();
    if (removal?.outcome === 'left')
      this.#deps.log.error(
        { path: removal.path, err: removal.error },
        'directories of an attempt are left behind',
      );
  }

  #makeDoor(): Door {
    const { deps, runId } = { deps: this.#deps, runId: this.#runId };
    return new Door({
      runId,
      log: deps.log,
      lanes: deps.fleet.lanes,
      flushes: deps.fleet.flushes,
      attemptToken: deps.attemptToken,
      runClient: deps.client,
      http: deps.http,
      fence: deps.fence,
      watchTtlMs: () => deps.fence.remainingMs(),
      runClaim: deps.claim,
      leaseUntilMs: () => Date.now() + deps.lease.remainingMs(),
      onSecret: (value) => deps.secrets.add(value),
      secrets: deps.secrets,
      onRunning: deps.onRunning,
    });
  }

  async #start(handler: Door): Promise<Sandbox> {
    const { workDirectory, gateway, sandboxes, runtimeFiles, credential, attempt, environment } = this.#deps;
    await sandboxes.removeOf(this.#runId);
    const { owner } = sandboxes;
    const directories = await workDirectory.create(this.#runId, String(attempt), owner);
    this.#directories = directories;
    const door = await gateway.openDoor(handler, owner);
    this.#openDoor = door;
    const paths = sandboxes.pathsInside({
      ...directories,
      sdk: runtimeFiles.sdkDir,
      gatewaySocket: door.socketPath,
      hostSocketDir: door.hostSocketDir,
    });
    const handOver: HandOver = {
      v: 1,
      runId: this.#runId,
      workerId: credential.workerId,
      gateway: { socketPath: paths.gatewaySocket, bearer: door.bearer },
      workspaceDir: paths.workspace,
      hostSocketDir: paths.hostSocketDir,
      programRoot: paths.program,
      sdkDir: paths.sdk,
      nodePath: this.#deps.nodePath,
      vcpus: 1,
      stopGraceMs: this.#deps.stopGraceMs,
      debug: this.#deps.debug,
    };
    const kind = sandboxes.name === 'container' ? 'container' : 'process';
    this.#sandbox = await sandboxes.start({
      sandboxId: randomUUID(),
      runId: this.#runId,
      attempt,
      handOver,
      env: sandboxEnvironment({ kind, forwarded: environment, credential, paths }),
      workspaceDir: directories.workspace,
      gatewayDir: door.dir,
      onLog: (stream, line) => this.#onLog(stream, line),
    });
    return this.#sandbox;
  }

  /** Ends when the sandbox is gone, by itself or by us. */
  async #watch(door: Door, sandbox: Sandbox): Promise<SandboxExit> {
    const over = new AbortController();
    const { fence, stopGraceMs, fencedGraceMs } = this.#deps;
    const endOnFence = untilAborted(AbortSignal.any([fence.signal, over.signal])).then(async () => {
      if (over.signal.aborted) return;
      door.close();
      await sandbox.stop({ graceMs: fencedGraceMs });
    });
    const leaveAfterFinalize = door.finalized.then(async () => {
      this.#deps.onFinalized();
      if (await pause(LEAVE_MS, over.signal)) await sandbox.stop({ graceMs: 1_000 });
    });
    const stopWhenWanted = this.#deps.stopWanted.then(async (reason) => {
      if (over.signal.aborted) return;
      this.#stopReason = reason;
      this.#deps.log.info({ reason }, 'run is told to stop');
      door.stop(reason);
      if (await pause(stopGraceMs + STOP_SLACK_MS, over.signal)) await sandbox.stop({ graceMs: 1_000 });
    });
    // They end by `over` at the latest; a failure of one (the engine is gone) shows in `exited`.
    for (const watcher of [endOnFence, leaveAfterFinalize, stopWhenWanted])
      watcher.catch((error: unknown) => this.#deps.log.warn({ err: error }, 'sandbox could not be stopped'));
    try {
      return await sandbox.exited;
    } finally {
      over.abort();
    }
  }

  #readEnd(door: Door, exit: SandboxExit): StayEnd {
    if (door.finalizedBody !== undefined) return { kind: 'finalized', status: door.finalizedBody.status };
    if (exit.unproven !== undefined) return { kind: 'unproven', evidence: exit.unproven };
    if (!this.#deps.fence.check()) return this.#fenced();
    if (this.#stopReason !== undefined) return { kind: 'stopped', reason: this.#stopReason };
    return { kind: 'ended', end: readSandboxEnd(exit, this.#stderrTail) };
  }

  #fenced(): StayEnd {
    return { kind: 'fenced', reason: this.#deps.fence.reason ?? 'lock_expiring' };
  }

  #onLog(stream: 'stdout' | 'stderr', line: string): void {
    const clear = this.#redacted(line);
    if (stream === 'stderr') {
      this.#stderrTail.push(clear);
      if (this.#stderrTail.length > STDERR_TAIL_LINES) this.#stderrTail.shift();
    }
    this.#deps.log.debug({ stream }, `sandbox: ${clear}`);
  }

  #redacted(text: string): string {
    return redact(text, this.#deps.secrets);
  }
}
