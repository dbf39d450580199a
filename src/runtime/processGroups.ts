// The process groups that a run has started: the program and the shells of its calls. It guards against anything of
// them that outlives a stop. A group that left its leader's (a daemon of a shell) is found by the executor, not here.

/** Signals whole groups, and only those that are known to be there: an id may be used again by strangers. */
export class ProcessGroups {
  readonly #leaders = new Set<number>();

  get isEmpty(): boolean {
    return this.#leaders.size === 0;
  }

  add(pid: number): void {
    this.#leaders.add(pid);
  }

  /** As soon as the group has ended, or nothing of it is needed any more: with `reap`, what is left of it is killed. */
  remove(pid: number, { reap }: { readonly reap: boolean }): void {
    if (!this.#leaders.delete(pid)) return;
    if (reap) signalGroup(pid, 'SIGKILL');
  }

  signal(pid: number, signal: NodeJS.Signals): void {
    if (this.#leaders.has(pid)) signalGroup(pid, signal);
  }

  signalAll(signal: NodeJS.Signals): void {
    for (const pid of this.#leaders) signalGroup(pid, signal);
  }
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // ESRCH: it has gone by itself. EPERM (macOS, zombies only): the same.
  }
}
