// Waiting on the program's behalf (protocol/run-control.md 14). It guards against a wait that outlives a stopped run,
// and against Node's timers, which turn anything over 24.8 days into no wait at all.

import { setTimeout as delay } from 'node:timers/promises';
import { isRecord } from '../contract/json.js';
import { RunFailure } from './runFailure.js';

/** Seven days. */
const LONGEST_MS = 604_800_000;

/**
 * Milliseconds of a wire argument: a number, `{durationMs}` or `{until}` with an ISO text.
 *
 * @throws RunFailure `INVALID_PARAMS`; `VALIDATION_FAILED` above seven days
 */
export function sleepMs(argument: unknown, nowMs: number): number {
  const ms = isRecord(argument) ? recordMs(argument, nowMs) : argument;
  if (typeof ms !== 'number' || !Number.isFinite(ms)) {
    throw new RunFailure(
      'INVALID_PARAMS',
      'sleep: arg must be a number, { durationMs } or { until } with an ISO time.',
    );
  }
  if (ms > LONGEST_MS) {
    throw new RunFailure(
      'VALIDATION_FAILED',
      `sleep(): ${ms} ms is longer than seven days (${LONGEST_MS} ms).`,
    );
  }
  return Math.max(0, ms);
}

/** @throws the signal's reason as soon as it is aborted */
export async function sleepFor(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (ms <= 0) return;
  await delay(ms, undefined, { signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw error;
  });
}

function recordMs({ until, durationMs }: Readonly<Record<string, unknown>>, nowMs: number): unknown {
  if (typeof until === 'string') return Date.parse(until) - nowMs;
  return typeof durationMs === 'number' && durationMs >= 0 ? durationMs : undefined;
}
