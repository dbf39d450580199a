// The waits between two tries: the policy of `protocol/run-control.md` 1 (0.5, 2, 5, 10 s) with jitter, full jitter for
// loops without an end. Guards against fleets that come back in step after an outage.

import { RETRY_DELAYS_MS } from '../contract/callPolicy.js';

/** How far a retry delay may stray from its figure, as a share of it. */
const RETRY_JITTER = 0.25;

/** A server may ask a retry to wait longer, up to the policy's own longest delay. */
const RETRY_AFTER_CEILING_MS = 10_000;

/** Returns a number in [0, 1), like `Math.random`. */
export type Random = () => number;

/**
 * Wait in milliseconds before the next attempt, or null when there is none left.
 *
 * @param failures attempts that have failed so far, at least 1
 * @param retryAfterMs what the failed answer asked for
 */
export function retryDelay(
  failures: number,
  retryAfterMs: number | undefined,
  random: Random,
): number | null {
  const delay = RETRY_DELAYS_MS[failures - 1];
  if (delay === undefined) return null;
  const jittered = delay * (1 - RETRY_JITTER + 2 * RETRY_JITTER * random());
  return Math.max(jittered, Math.min(retryAfterMs ?? 0, RETRY_AFTER_CEILING_MS));
}

/** Full jitter: anything up to an exponentially growing bound. `failures` counts from 1. */
export function fullJitter(
  failures: number,
  options: { readonly baseMs: number; readonly ceilingMs: number; readonly random: Random },
): number {
  return options.random() * Math.min(options.ceilingMs, options.baseMs * 2 ** (failures - 1));
}
