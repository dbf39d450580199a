// Which processes are there, and which of them carry a mark of ours in their environment. Only observes; it never
// signals. On Linux it reads /proc; elsewhere it asks `ps`, which shows neither sessions nor environments in a form
// that all systems share, so there a daemon that left its process group is not found.

import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';

/** A living process. `pid` and `startedAt` together name it; a pid alone may be somebody else's by now. */
export interface ProcessEntry {
  readonly pid: number;
  readonly ppid: number;
  readonly pgid: number;
  /** Session id; null where the system doesn't tell. */
  readonly sid: number | null;
  /** Rises with time and stays the same for one process; its unit is the system's own. */
  readonly startedAt: number;
}

/** Names a process for good, other than its pid. */
export function nameOf({ pid, startedAt }: ProcessEntry): string {
  return `${pid}@${startedAt}`;
}

export function pidOf({ pid }: ProcessEntry): number {
  return pid;
}

export interface ProcessTable {
  /** All living processes that this user may see. Rejects when the system doesn't tell. */
  list(): Promise<readonly ProcessEntry[]>;
  /**
   * When a process that was just started, and not yet waited for, began. Null where that costs a command.
   * Synchronous: by the next turn of the event loop the process may be gone and its pid with it.
   */
  startOf(pid: number): number | null;
  /** Looks once more, right before a signal: is this pid still that process? */
  isStill(entry: ProcessEntry): boolean;
  /** Those of `entries` whose environment, as it was when they began, holds exactly `mark` (`NAME=value`). */
  marked(entries: readonly ProcessEntry[], mark: string): Promise<readonly ProcessEntry[]>;
}

export function systemProcessTable(): ProcessTable {
  return process.platform === 'linux' ? new ProcTable() : new PsTable();
}

/** Reads of /proc in one turn of the event loop: about 2 ms, so that a host with many processes delays no renewal. */
const READS_PER_TURN = 200;

/** Environments are read off the event loop, as a stuck process can block the reader; a few at a time. */
const PARALLEL_READS = 8;

/** Linux: /proc. */
export class ProcTable implements ProcessTable {
  async list(): Promise<readonly ProcessEntry[]> {
    const entries: ProcessEntry[] = [];
    const pids = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
    for (const [index, pid] of pids.entries()) {
      if (index > 0 && index % READS_PER_TURN === 0) await nextTurn();
      const stat = readStat(pid);
      if (stat?.alive === true) entries.push(stat.entry);
    }
    return entries;
  }

  startOf(pid: number): number | null {
    return readStat(String(pid))?.entry.startedAt ?? null;
  }

  isStill(entry: ProcessEntry): boolean {
    const stat = readStat(String(entry.pid));
    return stat?.alive === true && stat.entry.startedAt === entry.startedAt;
  }

  async marked(entries: readonly ProcessEntry[], mark: string): Promise<readonly ProcessEntry[]> {
    const found: ProcessEntry[] = [];
    const wanted = Buffer.from(`${mark}\0`);
    const queue = entries.values();
    const read = async (): Promise<void> => {
      for (const entry of queue) {
        const environment = await readFile(`/proc/${entry.pid}/environ`).catch(nullIfGone);
        if (environment !== null && holds(environment, wanted)) found.push(entry);
      }
    };
    await Promise.all(Array.from({ length: PARALLEL_READS }, read));
    return found;
  }
}

/** The environment is a run of NUL-ended entries; a match inside a longer value is none. */
function holds(environment: Buffer, wanted: Buffer): boolean {
  for (let at = environment.indexOf(wanted); at !== -1; at = environment.indexOf(wanted, at + 1)) {
    if (at === 0 || environment[at - 1] === 0) return true;
  }
  return false;
}

function readStat(pid: string): { readonly entry: ProcessEntry; readonly alive: boolean } | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch (error) {
    return nullIfGone(error);
  }
  return parseStat(text);
}

/** Gone since it was listed, or another user's. Anything else, as too many open files, must not look like an end. */
function nullIfGone(error: unknown): null {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT' || code === 'ESRCH' || code === 'EACCES' || code === 'EPERM') return null;
  throw error;
}

/**
 * One line of /proc/PID/stat (proc(5)). The name in parentheses may itself hold spaces and parentheses.
 * A zombie is not alive, unless only its first thread has ended.
 */
export function parseStat(text: string): { readonly entry: ProcessEntry; readonly alive: boolean } | null {
  const nameEnd = text.lastIndexOf(')');
  const pid = Number.parseInt(text, 10);
  const fields = text.slice(nameEnd + 2).split(' ');
  const [state, ppid, pgid, sid] = fields;
  const threads = Number(fields[17]);
  const startedAt = Number(fields[19]);
  if (nameEnd === -1 || state === undefined || !Number.isInteger(pid) || !Number.isFinite(startedAt))
    return null;
  const dead = state === 'Z' || state === 'X' || state === 'x';
  return {
    entry: { pid, ppid: Number(ppid), pgid: Number(pgid), sid: Number(sid), startedAt },
    alive: !dead || threads > 1,
  };
}

const PS_TIMEOUT_MS = 5_000;
const PS_MAX_BYTES = 16 * 1024 * 1024;

/** Other POSIX systems: `ps`. Process groups and parents only. */
export class PsTable implements ProcessTable {
  async list(): Promise<readonly ProcessEntry[]> {
    const ps = promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,pgid=,stat=,lstart='], {
      env: { ...process.env, LC_ALL: 'C' },
      timeout: PS_TIMEOUT_MS,
      maxBuffer: PS_MAX_BYTES,
    });
    return parsePs((await ps).stdout);
  }

  startOf(): null {
    return null;
  }

  isStill(): boolean {
    return true; // Listed a moment ago; a second `ps` for each process would widen the gap rather than close it.
  }

  marked(): Promise<readonly ProcessEntry[]> {
    return Promise.resolve([]);
  }
}

/** Lines of `pid ppid pgid stat lstart`, e.g. `12 1 12 Ss Mon Dec  1 04:12:33 2025`. Unreadable lines are skipped. */
export function parsePs(text: string): readonly ProcessEntry[] {
  const entries: ProcessEntry[] = [];
  for (const line of text.split('\n')) {
    const [pid, ppid, pgid, stat, ...started] = line.trim().split(/\s+/);
    const startedAt = Date.parse(started.join(' '));
    if (stat === undefined || stat.startsWith('Z') || !Number.isFinite(startedAt)) continue;
    entries.push({ pid: Number(pid), ppid: Number(ppid), pgid: Number(pgid), sid: null, startedAt });
  }
  return entries;
}
