// Which processes belong to one sandbox. A parent-child walk alone misses what has let go of its parent (double fork,
// setsid, a shell's background job), so the session, the process group and the mark in the environment count too.
// It never names this process or one of its ancestors, whatever the evidence says. What escapes all of it, by leaving
// its session with an emptied environment after its parent has died, is out of reach of a process sandbox.

import { nameOf, type ProcessEntry, type ProcessTable } from './processTable.js';

/** What is known about a sandbox from outside. */
export interface TreeEvidence {
  /** The sandbox's first process, leader of its own session; absent when only the mark is known. */
  readonly root?: {
    readonly pid: number;
    /** null: not known on this system. */ readonly startedAt: number | null;
  };
  /** `NAME=value` in the environment of everything in the sandbox. */
  readonly mark: string;
}

/**
 * Living processes of the sandbox.
 *
 * @param known processes found before: what tied them to the sandbox may have died since, and they count as long as
 *   they live.
 */
export async function findTree(
  table: ProcessTable,
  evidence: TreeEvidence,
  known: readonly ProcessEntry[] = [],
): Promise<readonly ProcessEntry[]> {
  const all = await table.list();
  const spared = lineOf(process.pid, all);
  // Nothing in a sandbox is older than its first process: this spares reading most of a host's environments.
  const since = evidence.root?.startedAt ?? 0;
  const candidates = all.filter((entry) => !spared.has(entry.pid) && entry.startedAt >= since);
  const marked = await table.marked(candidates, evidence.mark);
  const names = new Set(known.map(nameOf));
  const still = candidates.filter((entry) => names.has(nameOf(entry)));
  return withDescendants(candidates, [...ofRoot(candidates, all, evidence), ...marked, ...still]);
}

/** The first process itself, and members of the session and the process group that it leads. */
function ofRoot(
  candidates: readonly ProcessEntry[],
  all: readonly ProcessEntry[],
  { root }: TreeEvidence,
): readonly ProcessEntry[] {
  if (root === undefined) return [];
  const holder = all.find((entry) => entry.pid === root.pid);
  // A pid stays taken while a session of that number has members; held by another process, the session is over.
  if (holder !== undefined && root.startedAt !== null && holder.startedAt !== root.startedAt) return [];
  return candidates.filter(({ pid, sid, pgid }) => pid === root.pid || sid === root.pid || pgid === root.pid);
}

function withDescendants(
  candidates: readonly ProcessEntry[],
  seeds: readonly ProcessEntry[],
): readonly ProcessEntry[] {
  const dependants = new Map<number, ProcessEntry[]>();
  for (const entry of candidates) {
    for (const on of new Set([entry.ppid, entry.pgid, entry.sid])) {
      if (on === null || on === entry.pid) continue;
      const list = dependants.get(on);
      if (list === undefined) dependants.set(on, [entry]);
      else list.push(entry);
    }
  }
  const members = new Set(seeds);
  // A set that grows while it is walked: each member is visited once.
  for (const member of members) {
    for (const dependant of dependants.get(member.pid) ?? []) {
      // The list is not taken in one instant; what is older than its supposed parent had another one of that pid.
      if (dependant.startedAt >= member.startedAt) members.add(dependant);
    }
  }
  return [...members];
}

function lineOf(pid: number, all: readonly ProcessEntry[]): ReadonlySet<number> {
  const parents = new Map(all.map((entry) => [entry.pid, entry.ppid]));
  const line = new Set([0, 1]);
  for (let at: number | undefined = pid; at !== undefined && !line.has(at); at = parents.get(at))
    line.add(at);
  return line;
}
