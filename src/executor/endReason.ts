// Why an attempt ended without a finalize of its own, told by evidence and not by guess (R9: exit codes that are only
// logged make a crash, a missing image and a success look alike).

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

export function countsAsAttempt(reason: EndReason): boolean {
  return !NEVER_COUNTED.has(reason);
}

/** How an attempt ended, in words for a person and in a form for a machine. */
export interface AttemptEnd {
  readonly reason: EndReason;
  /** One line: exit code, signal, last lines of standard error; redacted by the caller. */
  readonly evidence: string;
}

/** How much of a sandbox's standard error goes into the evidence. */
const EVIDENCE_LINES = 5;
const EVIDENCE_CHARACTERS = 2_000;

/** The exit code of a Node process that ended by an exception it didn't catch. */
const UNCAUGHT_EXIT_CODE = 1;

/**
 * Reads the end of a sandbox that went away before its run was finalized.
 *
 * A signal or Node's code for an uncaught exception is a crash of the runtime; any other exit is the sandbox's own.
 */
export function readSandboxEnd(
  exit: { readonly exitCode: number | null; readonly signal: string | null; readonly error?: string },
  stderrTail: readonly string[],
): AttemptEnd {
  if (exit.error !== undefined) return { reason: 'sandbox_start_failed', evidence: exit.error };
  const how = exit.signal === null ? `exit code ${String(exit.exitCode)}` : `signal ${exit.signal}`;
  const crashed = exit.signal !== null || exit.exitCode === UNCAUGHT_EXIT_CODE;
  const tail = stderrTail.slice(-EVIDENCE_LINES).join(' | ').slice(-EVIDENCE_CHARACTERS);
  return {
    reason: crashed ? 'runtime_crash' : 'sandbox_exit',
    evidence: tail === '' ? how : `${how}; last standard error: ${tail}`,
  };
}

/** The error code under which the executor finalizes a run that ended this way too often. */
export function finalizeCode(reason: EndReason): string {
  return reason.toUpperCase();
}
