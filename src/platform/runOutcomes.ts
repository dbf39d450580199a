// What the calls of a run can come to, as unions that their callers must handle. Guards against two readings of one
// status: what is a definite no and what may go better later is decided in `runClient.ts`, once.
import type { Readable } from 'node:stream';
import type { RunClaim } from '../contract/runControl.js';
import type { AnswerHeaders } from './answer.js';
import type { CallFailed, PlatformError } from './platformError.js';

/** A definite no: the same call will be answered the same again. */
export interface CallRefused {
  readonly outcome: 'refused';
  readonly status: number;
  /** First 500 characters, tokens removed. */
  readonly body: string;
  readonly error: PlatformError;
}

export type RunClaimOutcome =
  | { readonly outcome: 'claimed'; readonly claim: RunClaim; readonly serverDateMs: number | null }
  /** 409: somebody else holds it, or the run is over. */
  | { readonly outcome: 'held' }
  | CallRefused
  | CallFailed;

export type RenewOutcome =
  | {
      readonly outcome: 'renewed';
      readonly leaseUntil: number | undefined;
      readonly serverDateMs: number | null;
    }
  /** 409: never finalize. */
  | { readonly outcome: 'lost' }
  | CallFailed;

export type CancelOutcome = { readonly outcome: 'answered'; readonly cancelRequested: boolean } | CallFailed;
export type CreditOutcome = { readonly outcome: 'answered'; readonly funded: boolean } | CallFailed;

/**
 * `refused` = a 4xx but 408, 425 and 429 (409 of a finalize: another owner finished the run); `failed` = everything
 * that may go better later: network, 5xx, 429, and what isn't the platform's own answer (`run-control.md` 1: a page of
 * a proxy, a 401 without an error code).
 */
export type DeliveryOutcome = { readonly outcome: 'accepted' } | CallRefused | CallFailed;

export type ForwardOutcome =
  | {
      readonly outcome: 'answered';
      readonly status: number;
      readonly headers: AnswerHeaders;
      readonly body: Buffer;
    }
  | CallFailed;

export type ForwardStreamOutcome =
  /** `body` must be read to its end or destroyed. */
  | {
      readonly outcome: 'answered';
      readonly status: number;
      readonly headers: AnswerHeaders;
      readonly body: Readable;
    }
  | CallFailed;
