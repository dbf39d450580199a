// Ends every process of a sandbox and proves it. A single round of signals is not enough: a parent killed first lets
// go of its children, what forks while the list is read is not on it, and a killed process may take its time to die.
// So all are frozen first, until a look finds nothing that still runs, then killed, until a look finds neither any of
// them nor anything new.

import { setTimeout as delay } from 'node:timers/promises';
import { nameOf, type ProcessEntry, type ProcessTable } from './processTable.js';
import { findTree, type TreeEvidence } from './processTree.js';

/** SIGKILL works at once, except for what is stuck in the kernel or not ours to signal; then it isn't waited for. */
const KILL_TIMEOUT_MS = 10_000;

/** Rounds of freezing before killing begins anyway: something that forks faster than it is frozen has to go too. */
const FREEZE_ROUNDS = 10;

const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 100;

export interface KillOptions {
  /** What an earlier call could not end; it may be tied to the sandbox by nothing else any more. */
  readonly known?: readonly ProcessEntry[];
  /** Default 10 s. */
  readonly timeoutMs?: number;
}

/**
 * Kills until nothing is left.
 *
 * @returns what outlives SIGKILL when the time is up; empty means that no process of the sandbox lives.
 * @throws the system's error when processes couldn't be listed all that time: then nothing is proven.
 */
export async function killTree(
  table: ProcessTable,
  evidence: TreeEvidence,
  { known = [], timeoutMs = KILL_TIMEOUT_MS }: KillOptions = {},
): Promise<readonly ProcessEntry[]> {
  const deadline = performance.now() + timeoutMs;
  const seen = new Map(known.map((entry) => [nameOf(entry), entry]));
  let pauseMs = FIRST_PAUSE_MS;
  for (let round = 0; ; round += 1) {
    const late = performance.now() > deadline;
    const found = await look(table, evidence, [...seen.values()], late);
    if (found?.length === 0) return [];
    if (found !== null && late) return found;
    const running = (found ?? []).filter((entry) => !seen.has(nameOf(entry)));
    for (const entry of running) seen.set(nameOf(entry), entry);
    if (running.length > 0 && round < FREEZE_ROUNDS) {
      for (const entry of running) signal(table, entry, 'SIGSTOP');
      continue;
    }
    for (const entry of found ?? []) signal(table, entry, 'SIGKILL');
    await delay(pauseMs);
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

/** Null when processes can't be listed now (no file descriptor, no memory for `ps`) and there is time to try again. */
async function look(
  table: ProcessTable,
  evidence: TreeEvidence,
  known: readonly ProcessEntry[],
  last: boolean,
): Promise<readonly ProcessEntry[] | null> {
  try {
    return await findTree(table, evidence, known);
  } catch (error) {
    if (last) throw error;
    return null;
  }
}

function signal(table: ProcessTable, entry: ProcessEntry, name: 'SIGSTOP' | 'SIGKILL'): void {
  try {
    if (!table.isStill(entry)) return;
    process.kill(entry.pid, name);
  } catch {
    // Gone in between, or not ours to signal; the next look tells which, and the latter is reported as a survivor.
  }
}
