// How a run ended, and the finalize that says so (protocol/run-control.md 4.3). Losing the run is no outcome: then
// nothing is said at all.

import { stoppedOutput, type StopReason } from '../contract/fleetCalls.js';
import type { FinalizeBody, RunError } from '../contract/runControl.js';

export type Outcome =
  | { readonly kind: 'completed'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly error: RunError }
  | { readonly kind: 'aborted'; readonly reason: StopReason };

/** A value goes out unredacted: whoever consumes a result needs it as it is. Errors have been curated before. */
export function finalizeBody(outcome: Outcome, workerId: string): FinalizeBody {
  switch (outcome.kind) {
    case 'completed':
      return { status: 'completed', output: outcome.value, workerId };
    case 'failed':
      return { status: 'failed', output: { error: outcome.error }, workerId };
    case 'aborted':
      return { status: 'failed', output: stoppedOutput(outcome.reason), workerId };
  }
}
