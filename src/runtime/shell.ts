// `shell()`: a command in the system's shell, for the program's author (protocol/sdk.md 1.9). It guards against what a
// command leaves running when it is stopped (its whole group goes) and against output that fills the memory.

import { spawn } from 'node:child_process';
import { isAbsolute, join } from 'node:path';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { isRecord } from '../contract/json.js';
import { isStringMap } from '../contract/fields.js';
import { LONGEST_TIMER_MS } from '../waiting/waiting.js';
import type { ProcessGroups } from './processGroups.js';
import { RunFailure } from './runFailure.js';

const MAX_BUFFER_CHARS = 16 * 1024 * 1024;
const KILL_AFTER_MS = 5_000;
const SIGNAL_NUMBERS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGKILL: 9,
  SIGTERM: 15,
};

export interface ShellOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  /** Characters per stream. */
  readonly maxBuffer?: number;
}

export interface ShellResult {
  /** 128 + signal when it was ended by one. */
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ShellDependencies {
  readonly workspaceDir: string;
  /** The program's. */
  readonly env: Readonly<Record<string, string>>;
  readonly groups: ProcessGroups;
  readonly signal: AbortSignal;
}

/** @throws RunFailure `INVALID_PARAMS`, or with the output bound; the spawn's error; the run's abort error */
export async function runShell(
  cmd: string,
  options: ShellOptions,
  deps: ShellDependencies,
): Promise<ShellResult> {
  const { workspaceDir, groups, signal } = deps;
  const { cwd = '', maxBuffer = MAX_BUFFER_CHARS, timeoutMs } = options;
  signal.throwIfAborted();
  const child = spawn('/bin/sh', ['-c', cmd], {
    cwd: isAbsolute(cwd) ? cwd : join(workspaceDir, cwd),
    env: { ...deps.env, ...options.env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  const timers: NodeJS.Timeout[] = [];
  let overflow: 'stdout' | 'stderr' | undefined;
  let stopped = false;
  const stop = (): void => {
    if (pid === undefined) return;
    stopped = true;
    groups.signal(pid, 'SIGTERM');
    timers.push(setTimeout(() => groups.signal(pid, 'SIGKILL'), KILL_AFTER_MS));
  };
  const onOverflow = (name: 'stdout' | 'stderr'): void => {
    if (pid !== undefined && overflow === undefined) groups.signal(pid, 'SIGKILL');
    overflow ??= name;
  };
  const stdout = collect(child.stdout, maxBuffer, () => onOverflow('stdout'));
  const stderr = collect(child.stderr, maxBuffer, () => onOverflow('stderr'));
  signal.addEventListener('abort', stop, { once: true });
  if (timeoutMs !== undefined) timers.push(setTimeout(stop, Math.min(timeoutMs, LONGEST_TIMER_MS)));
  try {
    const exitCode = await new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      if (pid === undefined) return;
      groups.add(pid);
      // Until the pipes are closed, somebody of the group lives: also one that outlives its shell can be stopped.
      child.once('close', (code, ended) => {
        groups.remove(pid, { reap: stopped });
        resolve(code ?? 128 + (SIGNAL_NUMBERS[ended ?? ''] ?? 0));
      });
    });
    signal.throwIfAborted();
    if (overflow !== undefined) {
      throw new RunFailure(
        'VALIDATION_FAILED',
        `shell(): ${overflow} is longer than ${maxBuffer} characters.`,
        {
          hint: 'Raise `maxBuffer`, or write the output to a file.',
        },
      );
    }
    return { exitCode, stdout: stdout(), stderr: stderr() };
  } finally {
    for (const timer of timers) clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

/** @throws RunFailure `INVALID_PARAMS` that names the option */
export function readShellOptions(value: unknown): ShellOptions {
  if (value === undefined || value === null) return {};
  if (!isRecord(value)) throw invalid('opts must be an object');
  const { cwd, env, timeoutMs, maxBuffer } = value;
  if (cwd !== undefined && typeof cwd !== 'string') throw invalid('opts.cwd must be a string');
  if (env !== undefined && !isStringMap(env)) throw invalid('opts.env must be an object of strings');
  for (const [name, limit] of [
    ['timeoutMs', timeoutMs],
    ['maxBuffer', maxBuffer],
  ] as const) {
    if (limit !== undefined && !isLimit(limit)) throw invalid(`opts.${name} must be a number above 0`);
  }
  return {
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(isLimit(timeoutMs) ? { timeoutMs } : {}),
    ...(isLimit(maxBuffer) ? { maxBuffer } : {}),
  };
}

function collect(source: Readable, maxChars: number, onOverflow: () => void): () => string {
  const decoder = new StringDecoder('utf8');
  const parts: string[] = [];
  let chars = 0;
  source.on('data', (chunk: Buffer) => {
    const text = decoder.write(chunk);
    chars += text.length;
    if (chars > maxChars) onOverflow();
    else parts.push(text);
  });
  return () => parts.join('') + decoder.end();
}

function isLimit(value: unknown): value is number {
  return typeof value === 'number' && value > 0;
}

function invalid(problem: string): RunFailure {
  return new RunFailure('INVALID_PARAMS', `shell: ${problem}.`);
}
