// When an assignment lease is beaten next. Guards against a fixed cadence under a short lease (R22), a server whose
// clock differs from ours, and a hot loop when a lease has run out. Pure: the clocks are the caller's.

/** Never longer than this between two beats (`protocol/pool.md` 7). */
const LONGEST_BEAT_MS = 60_000;

/** Never shorter, unless a third of the whole lease is. */
const SHORTEST_BEAT_MS = 5_000;

/** Once a lease has run out, the platform has either given the run away, which a beat tells us, or it is away. */
const EXPIRED_BEAT_MS = 15_000;

/** The floor under everything. */
const LEAST_MS = 100;

/** The most that an answer is believed to grant: the lease that the cadence is designed for. */
const LONGEST_LEASE_MS = 300_000;

/**
 * What an answer grants, counted by the clock that wrote the deadline.
 *
 * @param expiresAtMs the lease's end, milliseconds since the epoch, by the server's clock
 * @param serverDateMs the server's clock when it answered; null = it didn't say, then `wallMs` (ours) is taken
 * @returns milliseconds from the answer, 0 to 300,000
 */
export function grantedMs(expiresAtMs: number, serverDateMs: number | null, wallMs: number): number {
  return Math.min(LONGEST_LEASE_MS, Math.max(0, expiresAtMs - (serverDateMs ?? wallMs)));
}

/**
 * Time until the next beat: a third of what is left, at most 60 s, at least 5 s or a third of a shorter lease.
 *
 * @param remainingMs what is left of the lease now; 0 or less = it has run out
 * @param lengthMs what the last good answer granted; 0 = an answer that made no sense
 */
export function beatInterval(remainingMs: number, lengthMs: number): number {
  if (lengthMs <= 0) return SHORTEST_BEAT_MS;
  const share = lengthMs / 3;
  if (remainingMs <= 0) return Math.max(LEAST_MS, Math.min(EXPIRED_BEAT_MS, share));
  const shortest = Math.max(LEAST_MS, Math.min(SHORTEST_BEAT_MS, share));
  return Math.min(LONGEST_BEAT_MS, Math.max(shortest, remainingMs / 3));
}
