// The leases that a process keeps, and which of them is due when. Plain data on the monotonic clock, no timer and no
// call: guards against a lease that is beaten twice at a time, and against two leases of one run.
import type { HeartbeatPhase } from '../contract/pool.js';
import { grantedMs } from './beatTiming.js';

/** A claim whose lease is to be beaten. */
export interface ClaimedLease {
  readonly runId: string;
  readonly leaseId: string;
  /** By the server's clock, milliseconds since the epoch. */
  readonly leaseExpiresAtMs: number;
  /** The server's clock when it granted the lease; null when it didn't say. */
  readonly serverDateMs: number | null;
}

export interface KeptLease {
  readonly runId: string;
  readonly leaseId: string;
  /** What to say when Redis can't be asked. */
  phase: HeartbeatPhase;
  /** What the last good answer granted. */
  lengthMs: number;
  /** On the clock of `performance.now()`, as is `dueAt`. */
  expiresAt: number;
  /** Infinity while its turn is under way. */
  dueAt: number;
  /** Answered 409, not yet recorded: it is not beaten any more. */
  lost: boolean;
}

export class KeptLeases {
  readonly #leases = new Map<string, KeptLease>();

  get size(): number {
    return this.#leases.size;
  }

  all(): KeptLease[] {
    return [...this.#leases.values()];
  }

  /**
   * Takes a lease on. An older lease of the same run is over: the platform gave the run away and we have it again.
   *
   * @param delayMs time until its first turn, from its length
   */
  add(lease: ClaimedLease, delayMs: (lengthMs: number) => number): void {
    const lengthMs = grantedMs(lease.leaseExpiresAtMs, lease.serverDateMs, Date.now());
    const now = performance.now();
    for (const older of this.all()) {
      if (older.runId === lease.runId) this.#leases.delete(older.leaseId);
    }
    this.#leases.set(lease.leaseId, {
      runId: lease.runId,
      leaseId: lease.leaseId,
      phase: 'preparing',
      lengthMs,
      expiresAt: now + lengthMs,
      dueAt: now + delayMs(lengthMs),
      lost: false,
    });
  }

  /** Only this very lease: its run may have been claimed anew meanwhile. */
  drop(lease: KeptLease): void {
    if (this.#leases.get(lease.leaseId) === lease) this.#leases.delete(lease.leaseId);
  }

  clear(): void {
    this.#leases.clear();
  }

  /** When the next lease is due; Infinity = none waits for a turn. */
  nextDueAt(): number {
    let next = Infinity;
    for (const lease of this.#leases.values()) next = Math.min(next, lease.dueAt);
    return next;
  }

  /** Takes up to `limit` leases that are due, the longest waiting first; they come back by a new `dueAt`. */
  takeDue(limit: number): KeptLease[] {
    const now = performance.now();
    const due = this.all()
      .filter((lease) => lease.dueAt <= now)
      .sort((a, b) => a.dueAt - b.dueAt)
      .slice(0, limit);
    for (const lease of due) lease.dueAt = Infinity;
    return due;
  }
}
