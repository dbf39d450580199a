// One run from claim to finalize, in the order of protocol/run-control.md section 3. It guards that order, and the one
// rule above all: an attempt that may have lost its run never finalizes it. What each step does lives in its own file;
// the executor owns leases, stop watching and workspace, so those steps of the reference are not here.

import { mkdir } from 'node:fs/promises';
import { RUN_LEASE_SECONDS } from '../contract/callPolicy.js';
import type { HandOver } from '../contract/handOver.js';
import { type Manifest, readManifest } from '../contract/manifest.js';
import { readRunClaim, readVersion } from '../contract/runAnswers.js';
import type { RunClaim, RunVersion } from '../contract/runControl.js';
import { WireError } from '../contract/wireError.js';
import type { SecretSet } from '../redaction/secretSet.js';
import { CALL_TIMEOUT_MS, type Control, type ControlCall, jsonOf } from './control.js';
import { EventStream } from './eventStream.js';
import { finalizeBody, type Outcome } from './outcome.js';
import type { ProcessGroups } from './processGroups.js';
import { deliver, rowDelivery, type DeliveryOptions } from './rowDelivery.js';
import { curate, RunFailure } from './runFailure.js';
import type { RunStop } from './runStop.js';

/** `not_ours`: another owner has the run, or it is over; nothing was sent. */
export type RunEnd = 'finalized' | 'not_ours';

export interface LifecycleParts {
  readonly handOver: HandOver;
  /** The runtime's own. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly control: Control;
  readonly secrets: SecretSet;
  readonly stop: RunStop;
  readonly groups: ProcessGroups;
  readonly log: (message: string) => void;
  /** Aborted when the process has been told to go: rows may still leave, a finalize may not. */
  readonly leaving: AbortSignal;
  /** This attempt may not act any more. */
  readonly onLost: (why: string) => void;
}

export class Lifecycle {
  readonly #parts: LifecycleParts;
  readonly #delivery: DeliveryOptions;
  #events: EventStream | undefined;

  constructor(parts: LifecycleParts) {
    this.#parts = parts;
    const { control, log, onLost } = parts;
    this.#delivery = { control, log, onLost };
  }

  /** @throws when the run can't be finalized; it then starts again elsewhere */
  async run(): Promise<RunEnd> {
    const claim = await this.#claim();
    if (claim === null) return 'not_ours';
    const claimedAt = performance.now();
    const events = new EventStream({
      runId: this.#parts.handOver.runId,
      lastCursor: claim.lastEventCursor,
      deliver: rowDelivery(this.#delivery),
    });
    this.#events = events;
    events.emit({ kind: 'run_status', status: 'running' });
    const outcome = await this.#outcome(claim, events, () => performance.now() - claimedAt);
    await events.drained();
    // What a program does when its process group is told to end is not how its run went.
    this.#parts.leaving.throwIfAborted();
    await this.#finalize(outcome);
    return 'finalized';
  }

  /** Resolves when every row emitted so far is with the gateway. */
  async drained(): Promise<void> {
    await this.#events?.drained();
  }

  async #claim(): Promise<RunClaim | null> {
    const { control, handOver } = this.#parts;
    const body = { workerId: handOver.workerId, leaseSeconds: RUN_LEASE_SECONDS };
    const call: ControlCall = { name: 'claim', method: 'POST', path: 'claim', body };
    const answer = await control.call(call, CALL_TIMEOUT_MS.control);
    if (answer.status === 409) return null;
    if (answer.status !== 201 && answer.status !== 200) throw control.unexpected(call, answer);
    return readRunClaim(jsonOf('claim', answer.body));
  }

  async #outcome(claim: RunClaim, events: EventStream, elapsedMs: () => number): Promise<Outcome> {
    const { stop, secrets } = this.#parts;
    try {
      const outcome = await this.#execute(claim, events, elapsedMs);
      // A stop is authoritative: whatever the program did after it, the run was stopped.
      return stop.reason === undefined ? outcome : { kind: 'aborted', reason: stop.reason };
    } catch (error) {
      if (stop.reason !== undefined) return { kind: 'aborted', reason: stop.reason };
      if (error instanceof RunFailure) return { kind: 'failed', error: curate(error, secrets) };
      throw error;
    }
  }

  async #execute(claim: RunClaim, events: EventStream, elapsedMs: () => number): Promise<Outcome> {
    const { handOver, control, stop, log } = this.#parts;
    const version = await this.#version();
    const manifest = this.#manifest(version);
    // Loaded while the first row is on its way (design section 8).
    const { prepareProgram } = await import('./program.js');
    const prepared = await prepareProgram(version.program, {
      ...handOver,
      control,
      signal: stop.signal,
      log,
    });
    try {
      await mkdir(handOver.workspaceDir, { recursive: true }).catch((error: unknown) =>
        log(`the workspace directory can't be made: ${String(error)}`),
      );
      const { persist } = manifest.workspace;
      if (persist === true || (persist !== false && persist.length > 0)) {
        const detail =
          'Persisted workspaces are not available in boardwalk-fleet 0.1 yet; the run starts with an empty one.';
        events.emit({ kind: 'workspace_persist_skipped', reason: 'error', detail });
      }
      const { executeProgram } = await import('./execution.js');
      return await executeProgram(prepared.entryPath, { ...this.#parts, claim, manifest, events, elapsedMs });
    } finally {
      await prepared.remove();
    }
  }

  async #version(): Promise<RunVersion> {
    const { control, stop } = this.#parts;
    const call: ControlCall = { name: 'version', method: 'GET', path: 'version', signal: stop.signal };
    const answer = await control.call(call, CALL_TIMEOUT_MS.control);
    if (answer.status === 404)
      throw new RunFailure('INTERNAL_ERROR', 'The run has no deployed version of its workflow.');
    if (answer.status !== 200) throw control.unexpected(call, answer);
    try {
      return readVersion(jsonOf('version', answer.body));
    } catch (cause) {
      throw internal('The version of the workflow', cause);
    }
  }

  #manifest(version: RunVersion): Manifest {
    try {
      const { manifest, warnings } = readManifest(version.manifest);
      for (const warning of warnings) this.#parts.log(`manifest: ${warning}`);
      return manifest;
    } catch (cause) {
      throw internal('The manifest of the workflow', cause);
    }
  }

  async #finalize(outcome: Outcome): Promise<void> {
    const { workerId } = this.#parts.handOver;
    const delivery = { ...this.#delivery, signal: this.#parts.leaving };
    const body = finalizeBody(outcome, workerId);
    const call: ControlCall = { name: 'finalize', method: 'POST', path: 'finalize', body };
    const delivered = await deliver(call, delivery);
    if (delivered.outcome === 'taken') return;
    this.#parts.log(
      `finalize was refused with status ${delivered.answer.status}; it is sent once more, as failed`,
    );
    const message = `The control plane refused the run's result with status ${delivered.answer.status}.`;
    const failed = finalizeBody({ kind: 'failed', error: { code: 'VALIDATION_FAILED', message } }, workerId);
    const again = await deliver({ ...call, body: failed }, delivery);
    if (again.outcome === 'refused') throw this.#parts.control.unexpected(call, again.answer);
  }
}

function internal(what: string, cause: unknown): RunFailure {
  const problem = cause instanceof WireError ? cause.message : 'it is not JSON';
  return new RunFailure('INTERNAL_ERROR', `${what} can't be used: ${problem}.`, { cause });
}
