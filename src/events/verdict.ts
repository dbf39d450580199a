// What an answer of the control plane means for the entry that was sent. One reading for rows and finalize, so that
// the two can't drift apart (design sections 6 and 9); what follows from it is each sender's.

import type { PlatformError } from '../platform/platformError.js';
import type { DeliveryOutcome } from '../platform/runOutcomes.js';

export type Verdict =
  | { readonly verdict: 'accepted' }
  /** 400, 413, 422: what was sent is bad, and will be every time. */
  | Refused<'entry_refused'>
  /** 401, 403, 404: this token may not speak for the run, or no longer. */
  | Refused<'access_refused'>
  /** 409: another owns the run. */
  | Refused<'conflict'>
  /** May go better later: network, 5xx, 429, and every answer that nobody foresaw. */
  | { readonly verdict: 'later'; readonly error: PlatformError }
  /** We broke the call off ourselves. */
  | { readonly verdict: 'cut' };

export interface Refused<Name extends string> {
  readonly verdict: Name;
  readonly status: number;
  /** Beginning of the answer's body, tokens removed. */
  readonly answer: string;
}

const BAD_ENTRY: ReadonlySet<number> = new Set([400, 413, 422]);
const NO_ACCESS: ReadonlySet<number> = new Set([401, 403, 404]);

export function verdictOn(outcome: DeliveryOutcome): Verdict {
  switch (outcome.outcome) {
    case 'accepted':
      return { verdict: 'accepted' };
    case 'failed':
      return outcome.error.code === 'PLATFORM_ABORTED'
        ? { verdict: 'cut' }
        : { verdict: 'later', error: outcome.error };
    case 'refused': {
      const { status, body: answer, error } = outcome;
      if (BAD_ENTRY.has(status)) return { verdict: 'entry_refused', status, answer };
      if (NO_ACCESS.has(status)) return { verdict: 'access_refused', status, answer };
      if (status === 409) return { verdict: 'conflict', status, answer };
      return { verdict: 'later', error };
    }
  }
}
