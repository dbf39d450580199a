// The program as a process of its own, from start to end (protocol/program.md 3.1, 3.2, 8). It guards the run against
// everything a program can do to its process: a crash, an exit in the middle, a loop without end, a stop that it
// ignores. What it prints is captured, what is left of its group is killed, and how it ended is one of a few answers.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { StopReason } from '../contract/fleetCalls.js';
import { waitFor } from '../waiting/waiting.js';
import type { HostServer } from './hostServer.js';
import type { ProcessGroups } from './processGroups.js';
import type { ProgramOutput } from './programOutput.js';
import type { ProgramReport } from './programReport.js';
import { RunFailure, type Thrown } from './runFailure.js';

/** For what the process left in its pipes and its socket; a stranger that holds one open isn't waited for. */
const LAST_WORDS_MS = 2_000;
const INTERPRETER_MISSING: ReadonlySet<unknown> = new Set(['ENOENT', 'EACCES', 'ENOTDIR']);

export interface ProgramRunOptions {
  /** null = the runtime's own Node. */
  readonly nodePath: string | null;
  readonly sdkDir: string;
  readonly entryPath: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Where the program finds its host. */
  readonly socketPath: string;
  readonly stopGraceMs: number;
  readonly host: Pick<HostServer, 'cancel' | 'ended'>;
  readonly report: ProgramReport;
  readonly output: ProgramOutput;
  readonly groups: ProcessGroups;
  /** Calls back when the run is to stop; at once when it is already. */
  readonly onStop: (listener: (reason: StopReason) => void) => void;
}

export type ProgramEnd =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly thrown: Thrown };

/** @throws RunFailure `HOST_BUILD_FAILED` when no process can be started */
export async function runProgram(options: ProgramRunOptions): Promise<ProgramEnd> {
  const { env, socketPath, groups, output, stopGraceMs } = options;
  const node = options.nodePath ?? process.execPath;
  const child = spawn(node, [join(options.sdkDir, 'loader.mjs'), options.entryPath], {
    cwd: options.cwd,
    env: { ...env, BOARDWALK_HOST_SOCK: socketPath },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  if (pid === undefined) {
    return new Promise((_resolve, reject) =>
      child.once('error', (error) => reject(startFailure(node, error))),
    );
  }
  groups.add(pid);
  child.on('error', () => undefined); // A signal that could not be sent; the exit tells the rest.
  const piped = Promise.all([output.pipe('stdout', child.stdout), output.pipe('stderr', child.stderr)]);
  let killTimer: NodeJS.Timeout | undefined;
  let ended = false;
  options.onStop((reason) => {
    if (ended) return;
    options.host.cancel(reason);
    killTimer = setTimeout(() => groups.signal(pid, 'SIGKILL'), stopGraceMs);
  });
  const exit = await new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => {
      groups.remove(pid, { reap: true });
      resolve({ code, signal });
    });
  });
  ended = true;
  clearTimeout(killTimer);
  output.hurry();
  await lastWords(Promise.all([piped, options.host.ended]));
  child.stdout.destroy();
  child.stderr.destroy();
  await piped;
  return endOf(exit, options.report, output);
}

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** In the order of protocol/program.md 3.4, which holds for every program that is a process. */
function endOf({ code, signal }: Exit, report: ProgramReport, output: ProgramOutput): ProgramEnd {
  if (report.value !== undefined) return { kind: 'returned', value: report.value.value };
  if (report.thrown !== undefined) return { kind: 'failed', thrown: report.thrown };
  if (code === 0) {
    return failed(
      'INTERNAL_ERROR',
      'The program ended its process before its run function had returned.',
      'Return from the run function instead of calling process.exit().',
    );
  }
  const how = signal === null ? `with exit code ${code ?? 'unknown'}` : `by signal ${signal}`;
  const lastLine = output.lastStderrLine;
  const message = lastLine ?? `The program's process was ended ${how} before its run function had returned.`;
  const hint =
    signal === 'SIGKILL'
      ? 'The process was killed; the machine or the sandbox may have run out of memory.'
      : `The program's process ended ${how}.`;
  return failed('PROGRAM_ERROR', message, hint);
}

function failed(code: string, message: string, hint: string): ProgramEnd {
  return { kind: 'failed', thrown: { code, message, hint } };
}

async function lastWords(words: Promise<unknown>): Promise<void> {
  await waitFor(words, { ms: LAST_WORDS_MS });
}

function startFailure(node: string, error: Error): RunFailure {
  const code: unknown = 'code' in error ? error.code : undefined;
  const hint = INTERPRETER_MISSING.has(code)
    ? 'Check the path of Node for programs, and that the workspace exists.'
    : undefined;
  return new RunFailure(
    'HOST_BUILD_FAILED',
    `The program's process can't be started with ${node}: ${String(code)}.`,
    { hint },
  );
}
