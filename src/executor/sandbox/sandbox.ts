// What the executor asks of a place where one attempt runs, whatever the kind (design section 8). An attempt knows
// nothing else about it, so a container and a host process end, stop and fail in the same words.
// What the runtime inside does, and what an end means for the run, is not decided here.

import type { HandOver } from '../../contract/handOver.js';

/** Where things are, as the run process sees them. */
export interface SandboxPaths {
  readonly workspace: string;
  readonly tmp: string;
  /** Where archives are unpacked; never inside the workspace. */
  readonly program: string;
  readonly sdk: string;
  readonly gatewaySocket: string;
  /** Where the program's own socket is made. */
  readonly hostSocketDir: string;
}

/** Who owns the files of a sandbox on this host. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** Everything that one sandbox needs; it is used once. */
export interface SandboxSpec {
  /** Unique for each start, also within one run. */
  readonly sandboxId: string;
  readonly runId: string;
  /** The platform's attempt number plus our restarts; for labels and logs only. */
  readonly attempt: number;
  /** Written as one JSON line on the sandbox's standard input, which is closed after it. */
  readonly handOver: HandOver;
  /** Non-secret environment of the run process (`environment.ts`). Credentials never go here. */
  readonly env: Readonly<Record<string, string>>;
  /** On this host; working directory of the run process; exists already. */
  readonly workspaceDir: string;
  /** On this host: holds the socket of the run's gateway. */
  readonly gatewayDir: string;
  /**
   * One line of what the runtime itself wrote, without its line end and bounded in length. Must not throw. The
   * program's own output doesn't come this way: it is part of the run's events.
   */
  onLog(stream: 'stdout' | 'stderr', line: string): void;
}

/** Ends that only whoever runs the sandbox can tell; end reasons of design section 6. */
export type SandboxEndCause = 'out_of_memory' | 'image_missing' | 'image_denied' | 'engine_lost';

/** How a sandbox ended. */
export interface SandboxExit {
  readonly exitCode: number | null;
  /** Name of the signal that ended the run process, e.g. `SIGKILL`. */
  readonly signal: string | null;
  /** Set only if it never came to run: what was tried, and why not. */
  readonly error?: string;
  /** What the kind knows beyond the exit code. */
  readonly cause?: SandboxEndCause;
  /** Set when something of it may still live: nothing may be started in its place before the queue lock has lapsed. */
  readonly unproven?: string;
}

export interface Sandbox {
  readonly id: string;
  /**
   * Resolves once the run process is gone, nothing that it started is left (or `unproven` says why that isn't known)
   * and its last log line was handed out. Never rejects.
   */
  readonly exited: Promise<SandboxExit>;
  /**
   * SIGTERM to the run process, SIGKILL to everything in the sandbox after `graceMs` (0: at once). Resolves when no
   * process of it lives. May be called again, meanwhile (the shorter grace wins) and after the end.
   *
   * @throws SandboxSurvivorsError when a process outlives SIGKILL: then nothing may start in its place yet.
   */
  stop(options: { readonly graceMs: number }): Promise<void>;
}

/** A way to make sandboxes. */
export interface SandboxKind {
  readonly name: 'process' | 'container' | 'bwrap' | 'none';
  /**
   * Can this machine run it? Called once at start, before anything else; makes ready what all its sandboxes share.
   *
   * @returns sentences that an operator has to see before the first run; often none.
   * @throws OperatorError naming what is missing and what to do.
   */
  check(): Promise<readonly string[]>;
  /** After {@link check}: whom workspaces and gateway sockets must belong to; `null`: this process's own user. */
  readonly owner: Owner | null;
  /** What the run process is told about where it is. */
  pathsInside(host: SandboxPaths): SandboxPaths;
  /** A sandbox that can't be started is one whose `exited` carries an `error`; this never rejects for that. */
  start(spec: SandboxSpec): Promise<Sandbox>;
  /**
   * Ends what earlier attempts of this run left on this host, in this fleet.
   *
   * @throws SandboxSurvivorsError as {@link Sandbox.stop} does; SandboxStartError when nobody can tell what is left
   */
  removeOf(runId: string): Promise<void>;
}

/** Thrown when it can't be proven that a sandbox is gone: processes outlive SIGKILL, or the engine doesn't answer. */
export class SandboxSurvivorsError extends Error {
  override readonly name = 'SandboxSurvivorsError';
  readonly code = 'SANDBOX_SURVIVORS';

  constructor(what: string, why: string) {
    super(`${what} can't be ended: ${why}`);
  }

  static ofProcesses(what: string, pids: readonly number[]): SandboxSurvivorsError {
    return new SandboxSurvivorsError(
      what,
      `${pids.length} of its processes outlive SIGKILL (pid ${pids.slice(0, 10).join(', ')}). ` +
        'Look at them with `ps -o pid,stat,user,wchan,args -p PID`.',
    );
  }
}

/** Thrown before a start whose cause of failure is known: the run has no part in it. */
export class SandboxStartError extends Error {
  override readonly name = 'SandboxStartError';
  readonly code = 'SANDBOX_START';
  readonly reason: SandboxEndCause;

  constructor(message: string, reason: SandboxEndCause) {
    super(message);
    this.reason = reason;
  }
}
