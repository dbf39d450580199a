// Why an attempt ended without a finalize of its own, told by evidence and not by guess (R9: exit codes that are only
// logged make a crash, a missing image and a success look alike).

import { EXIT_UNREACHABLE } from '../contract/handOver.js';
import type { SandboxExit } from './sandbox/sandbox.js';

/** The typed causes of design section 6. */
export type EndReason =
  | 'sandbox_exit'
  | 'runtime_crash'
  | 'out_of_memory'
  | 'pids_limit'
  | 'disk_full'
  | 'timeout'
  | 'image_missing'
  | 'image_denied'
  | 'sandbox_start_failed'
  | 'engine_lost'
  | 'control_plane_unreachable'
  | 'cancelled'
  | 'lease_lost'
  | 'executor_lost'
  | 'handed_back';

/** Reasons that never count towards the attempts of a run: the run had no part in them. */
const NEVER_COUNTED: ReadonlySet<EndReason> = new Set<EndReason>([
  'handed_back',
  'engine_lost',
  'control_plane_unreachable',
  'lease_lost',
]);

/** Reasons that this machine may be to blame for: the run never came to work. */
const START_FAILURES: ReadonlySet<EndReason> = new Set<EndReason>([
  'sandbox_start_failed',
  'image_missing',
  'image_denied',
  'engine_lost',
]);

export function isStartFailure(reason: EndReason): boolean {
  return START_FAILURES.has(reason);
}

export function countsAsAttempt(reason: EndReason): boolean {
  return !NEVER_COUNTED.has(reason);
}

/** How an attempt ended, in words for a person and in a form for a machine. */
export interface AttemptEnd {
  readonly reason: EndReason;
  /** One line: exit code, signal, last lines of standard error; redacted. */
  readonly evidence: string;
}

/** How much of a sandbox's standard error goes into the evidence. */
const EVIDENCE_LINES = 5;
const EVIDENCE_CHARACTERS = 2_000;

/** The exit code of a Node process that ended by an exception it didn't catch. */
const UNCAUGHT_EXIT_CODE = 1;

/** The first pause before a run is tried again; it doubles, so that what is passing has time to pass. */
const TRY_AGAIN_FIRST_MS = 1_000;
const TRY_AGAIN_CEILING_MS = 30_000;

/** @param starts of this claim before the one that ended. */
export function tryAgainInMs(starts: number): number {
  return Math.min(TRY_AGAIN_CEILING_MS, TRY_AGAIN_FIRST_MS * 2 ** Math.min(starts, 10));
}

/**
 * Reads the end of a sandbox that went away before its run was finalized.
 *
 * A signal or Node's code for an uncaught exception is a crash of the runtime, its own code for a platform that doesn't
 * answer is no fault of the run; any other exit is the sandbox's own.
 *
 * @param stderrTail redacted: what is cut here could leave a part of a secret that nobody recognises.
 */
export function readSandboxEnd(exit: SandboxExit, stderrTail: readonly string[]): AttemptEnd {
  if (exit.error !== undefined) return { reason: exit.cause ?? 'sandbox_start_failed', evidence: exit.error };
  const how = exit.signal === null ? `exit code ${String(exit.exitCode)}` : `signal ${exit.signal}`;
  const tail = stderrTail.slice(-EVIDENCE_LINES).join(' | ').slice(-EVIDENCE_CHARACTERS);
  return { reason: reasonOf(exit), evidence: tail === '' ? how : `${how}; last standard error: ${tail}` };
}

function reasonOf(exit: SandboxExit): EndReason {
  if (exit.cause !== undefined) return exit.cause;
  if (exit.exitCode === EXIT_UNREACHABLE) return 'control_plane_unreachable';
  return exit.signal !== null || exit.exitCode === UNCAUGHT_EXIT_CODE ? 'runtime_crash' : 'sandbox_exit';
}

/** The error code under which the executor finalizes a run that ended this way too often. */
export function finalizeCode(reason: EndReason): string {
  return reason.toUpperCase();
}
