// What the executor answers in the platform's place, because it owns the run lease (design section 6): the sandbox asks
// as a run process does, and the platform is asked once for the run and not by everybody.

import type { StopReason } from '../../contract/fleetCalls.js';
import { isRecord, ownMember, type UnknownRecord } from '../../contract/json.js';
import type { RunClaim } from '../../contract/runControl.js';

/** The platform's own answer with the attempt's figures, so that fields which we don't know reach the runtime too. */
export function claimAnswer(claim: RunClaim, leaseUntilMs: number): UnknownRecord {
  const run = ownMember(claim.raw, 'run');
  return {
    ...claim.raw,
    run: { ...(isRecord(run) ? run : {}), attempt: claim.run.attempt },
    lastEventCursor: claim.lastEventCursor,
    leaseUntil: Math.floor(leaseUntilMs),
  };
}

export function renewAnswer(leaseUntilMs: number): { readonly leaseUntil: number } {
  return { leaseUntil: Math.floor(leaseUntilMs) };
}

export function cancelAnswer(stop: StopReason | undefined): { readonly cancelRequested: boolean } {
  return { cancelRequested: stop === 'cancelled' };
}

export function creditAnswer(stop: StopReason | undefined): { readonly funded: boolean } {
  return { funded: stop !== 'credit_exhausted' };
}
