// Host processes as sandboxes: how one is started, and how what earlier attempts left is found. Credentials never go
// into arguments or environment; standard input takes them. It isolates nothing, which `check` says, and it is never
// chosen silently.

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { access, constants } from 'node:fs/promises';
import type { Logger } from 'pino';
import { OperatorError } from '../../../contract/operatorError.js';
import { runtimeMissing, type RuntimeFiles } from '../runtimeFiles.js';
import {
  SandboxSurvivorsError,
  type Sandbox,
  type SandboxExit,
  type SandboxKind,
  type SandboxPaths,
  type SandboxSpec,
} from '../sandbox.js';
import { killTree } from './killTree.js';
import { ProcessSandbox } from './processSandbox.js';
import { pidOf, systemProcessTable, type ProcessTable } from './processTable.js';
import type { TreeEvidence } from './processTree.js';

/**
 * Inherited by everything in the sandbox; they find what has let go of its parent. Not `BOARDWALK_FLEET_...`: those
 * are settings, and a fleet that is started inside a run would read these as its own.
 */
const SANDBOX_MARK = 'BWF_SANDBOX';
const RUN_MARK = 'BWF_RUN';

export interface ProcessSandboxOptions {
  /** Name of the fleet: two fleets on one host may have runs of the same id. */
  readonly fleetName: string;
  readonly runtimeFiles: RuntimeFiles;
  readonly log: Logger;
  /** Default: this system's own. */
  readonly processTable?: ProcessTable;
}

export class ProcessSandboxKind implements SandboxKind {
  readonly name = 'process';
  readonly owner = null;
  readonly #options: ProcessSandboxOptions;
  readonly #table: ProcessTable;

  constructor(options: ProcessSandboxOptions) {
    this.#options = options;
    this.#table = options.processTable ?? systemProcessTable();
  }

  /** @throws OperatorError `SANDBOX_UNSUPPORTED` without POSIX process groups, `RUNTIME_MISSING` without the runtime. */
  async check(): Promise<readonly string[]> {
    if (process.platform === 'win32') {
      const message = 'Runs as host processes need Linux, macOS or another POSIX system.';
      throw new OperatorError('SANDBOX_UNSUPPORTED', message);
    }
    const { runtimePath } = this.#options.runtimeFiles;
    await access(runtimePath, constants.R_OK).catch((cause: unknown) => {
      throw runtimeMissing(runtimePath, cause);
    });
    return [
      'Runs are plain processes of this host and are not isolated: workflow code, and commands that a model writes, ' +
        'can read and change whatever this user can.',
    ];
  }

  pathsInside(host: SandboxPaths): SandboxPaths {
    return host;
  }

  start(spec: SandboxSpec): Promise<Sandbox> {
    return Promise.resolve(this.#spawn(spec));
  }

  async removeOf(runId: string): Promise<void> {
    const survivors = await killTree(this.#table, { mark: `${RUN_MARK}=${this.#runMark(runId)}` });
    if (survivors.length > 0)
      throw SandboxSurvivorsError.ofProcesses(`What is left of run ${runId}`, survivors.map(pidOf));
  }

  #spawn(spec: SandboxSpec): Sandbox {
    const { runtimeFiles, log } = this.#options;
    const env = { ...spec.env, [SANDBOX_MARK]: spec.sandboxId, [RUN_MARK]: this.#runMark(spec.runId) };
    let child: ChildProcessWithoutNullStreams;
    try {
      child = spawn(process.execPath, [runtimeFiles.runtimePath], {
        cwd: spec.workspaceDir,
        env,
        detached: true, // setsid: a terminal's Ctrl-C reaches us, and not the run that is to finish (pool.md 14).
        stdio: ['pipe', 'pipe', 'pipe'],
      });
    } catch (error) {
      return neverStarted(spec, error);
    }
    const { pid } = child;
    if (pid === undefined) return neverStarted(spec, once(child, 'error'));
    const mark = `${SANDBOX_MARK}=${spec.sandboxId}`;
    const evidence: TreeEvidence = { root: { pid, startedAt: this.#table.startOf(pid) }, mark };
    return new ProcessSandbox({ spec, child, evidence, table: this.#table, log });
  }

  #runMark(runId: string): string {
    return `${this.#options.fleetName}/${runId}`;
  }
}

/** @param cause the error, or a promise of the arguments of the child's `error` event. */
function neverStarted(spec: SandboxSpec, cause: unknown): Sandbox {
  const exited = Promise.resolve(cause).then((settled): SandboxExit => {
    const error: unknown = Array.isArray(settled) ? settled[0] : settled;
    return { exitCode: null, signal: null, error: startFailure(spec, error) };
  });
  return { id: spec.sandboxId, exited, stop: () => Promise.resolve() };
}

/** By code only: the text of Node's own error may hold a value of the environment. */
function startFailure(spec: SandboxSpec, error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  const what = `The runtime can't be started in ${spec.workspaceDir}: ${code}`;
  switch (code) {
    case 'E2BIG':
      return `${what}. The environment of the run is too large for this system.`;
    case 'EAGAIN':
      return `${what}. This user may not start more processes (ulimit -u, or the pids limit of the service).`;
    case 'EMFILE':
    case 'ENFILE':
      return `${what}. No more files can be opened (ulimit -n).`;
    case 'ENOENT':
      return `${what}. The directory or ${process.execPath} does not exist.`;
    default:
      return what;
  }
}
