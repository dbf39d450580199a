// Calls between our runtime and our gateway that the platform doesn't know: the dead man's switch and the wish to stop,
// as an endless stream of lines. Guards against a sandbox that acts on after nobody vouches for it any more. A line of
// a kind that the reader doesn't know is skipped, so that a newer gateway may say more. The call itself is
// `GET <run-control base>/_fleet/watch`, answered 200 with an endless stream of `WatchLine`.

import { isRecord } from './json.js';

/**
 * Header of a model call: the name of the agent that makes it, percent-encoded; empty when it has none. The wire's body
 * has no field for it, and a strict platform may refuse one; the local control plane's scripts tell agents apart by it.
 */
export const AGENT_HEADER = 'boardwalk-fleet-agent';

/** Why a run is to stop before its end. */
export type StopReason = 'cancelled' | 'credit_exhausted';

/** Output of the finalize of a stopped run (protocol/run-control.md 4.3), whoever sends it. */
export function stoppedOutput(reason: StopReason): {
  readonly error: { readonly code: string; readonly reason: StopReason; readonly message: string };
} {
  return { error: { code: 'RUN_ABORTED', reason, message: `Run stopped: ${reason}` } };
}

export type WatchLine =
  /** How long the sandbox may go on without another line. Sent at once, then at least every second. */
  | { readonly t: 'alive'; readonly ttl_ms: number }
  /** Sent as soon as a stop is wanted, and first of all to a watcher that comes later. */
  | { readonly t: 'stop'; readonly reason: StopReason };

/** One line with its line end. */
export function encodeWatchLine(line: WatchLine): string {
  return `${JSON.stringify(line)}\n`;
}

/** null: not a line that we know. */
export function parseWatchLine(line: string): WatchLine | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isRecord(parsed)) return null;
  const { t, ttl_ms, reason } = parsed;
  if (t === 'alive' && typeof ttl_ms === 'number' && ttl_ms >= 0) return { t, ttl_ms };
  if (t === 'stop' && (reason === 'cancelled' || reason === 'credit_exhausted')) return { t, reason };
  return null;
}
