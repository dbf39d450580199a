// Who waits for whom: runs that are ready, by pool and labels, and the polls that are held for them. A poll costs one
// look at each label set of its pool, however many runs wait; a run that becomes ready goes to the poll that has waited
// longest and may have it (protocol/pool.md 5, 16).

export interface Placed {
  readonly pool: string;
  /** A taker must have all of them. */
  readonly labels: readonly string[];
}

/** A poll in progress. */
export interface HeldPoll<J> {
  /** `null`: nothing came in time, or the poll was released. */
  readonly answer: Promise<J | null>;
  /** Ends the poll without a job. */
  release(): void;
}

interface Group<J> {
  readonly labels: readonly string[];
  readonly queue: Fifo<J>;
}

interface Holder<J> {
  readonly taker: Placed;
  readonly give: (job: J | null) => void;
}

export class Dispatch<J extends Placed> {
  readonly #groups = new Map<string, Map<string, Group<J>>>();
  readonly #holders = new Map<string, Set<Holder<J>>>();
  /** What is in the queues and may still be taken; what was withdrawn stays in its queue until it is its turn. */
  readonly #waiting = new Set<J>();
  #turn = 0;
  #closed = false;

  /** @param place `front` for what was offered and not taken */
  add(job: J, place: 'back' | 'front' = 'back'): void {
    for (const holder of this.#holders.get(job.pool) ?? []) {
      if (!hasLabels(holder.taker, job.labels)) continue;
      holder.give(job);
      return;
    }
    const { pool, labels } = job;
    const groups = this.#groups.get(pool) ?? new Map<string, Group<J>>();
    this.#groups.set(pool, groups);
    const name = JSON.stringify([...labels].sort());
    const group = groups.get(name) ?? { labels, queue: new Fifo<J>() };
    groups.set(name, group);
    this.#waiting.add(job);
    if (place === 'front') group.queue.putBack({ job, turn: 0 });
    else group.queue.push({ job, turn: (this.#turn += 1) });
  }

  /** Whoever may not be taken any more. */
  withdraw(job: J): void {
    this.#waiting.delete(job);
  }

  /** Answers at once when something waits; else holds for `holdMs`. */
  poll(taker: Placed, holdMs: number): HeldPoll<J> {
    const ready = this.#closed ? null : this.#take(taker);
    if (ready !== null || this.#closed) return { answer: Promise.resolve(ready), release: () => undefined };
    const holders = this.#holders.get(taker.pool) ?? new Set();
    this.#holders.set(taker.pool, holders);
    let release = (): void => undefined;
    const answer = new Promise<J | null>((resolve) => {
      const timer = setTimeout(() => holder.give(null), holdMs);
      const holder: Holder<J> = {
        taker,
        give: (job) => {
          clearTimeout(timer);
          holders.delete(holder);
          resolve(job);
        },
      };
      holders.add(holder);
      release = () => holder.give(null);
    });
    return { answer, release };
  }

  /** Ends every held poll, of one taker or of all. */
  releaseAll(taker?: Placed): void {
    for (const holders of this.#holders.values())
      for (const holder of holders) if (taker === undefined || holder.taker === taker) holder.give(null);
  }

  /** No poll is held any more. */
  close(): void {
    this.#closed = true;
    this.releaseAll();
  }

  #take(taker: Placed): J | null {
    const groups = this.#groups.get(taker.pool);
    let first: { readonly group: Group<J>; readonly turn: number } | null = null;
    for (const [name, group] of groups ?? []) {
      if (!hasLabels(taker, group.labels)) continue;
      const turn = group.queue.nextTurn((job) => this.#waiting.has(job));
      if (turn === null) groups?.delete(name);
      else if (first === null || turn < first.turn) first = { group, turn };
    }
    const job = first?.group.queue.shift() ?? null;
    if (job !== null) this.#waiting.delete(job);
    return job;
  }
}

interface Ticket<J> {
  readonly job: J;
  readonly turn: number;
}

/** A queue whose head moves instead of its content: taking the first of a hundred thousand costs as much as of ten. */
class Fifo<J> {
  readonly #returned: Ticket<J>[] = [];
  #tickets: Ticket<J>[] = [];
  #head = 0;

  push(ticket: Ticket<J>): void {
    this.#tickets.push(ticket);
  }

  putBack(ticket: Ticket<J>): void {
    this.#returned.push(ticket);
  }

  /** Turn of the first that is wanted; what stands before it is dropped. */
  nextTurn(isWanted: (job: J) => boolean): number | null {
    for (;;) {
      const ticket = this.#first();
      if (ticket === undefined) return null;
      if (isWanted(ticket.job)) return ticket.turn;
      this.shift();
    }
  }

  shift(): J | null {
    const ticket = this.#first();
    if (ticket === undefined) return null;
    if (this.#returned.length > 0) this.#returned.shift();
    else this.#head += 1;
    if (this.#head > 1_000 && this.#head * 2 > this.#tickets.length) {
      this.#tickets = this.#tickets.slice(this.#head);
      this.#head = 0;
    }
    return ticket.job;
  }

  #first(): Ticket<J> | undefined {
    return this.#returned[0] ?? this.#tickets[this.#head];
  }
}

function hasLabels(taker: Placed, labels: readonly string[]): boolean {
  return labels.every((label) => taker.labels.includes(label));
}
