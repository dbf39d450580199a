// What has come of one model call so far, and whether it may be made again (protocol/inference.md 5). The rule is
// shared by the gateway and the runtime. It guards against paying twice and showing twice: after content the answer is
// always no here, and what lies beyond (a resume announced by a reset) is the gateway's own decision.

import { RETRY_DELAYS_MS } from './callPolicy.js';
import { isRecord } from './json.js';
import type { ErrorFrame, InferenceFrame, ResultFrame } from './inference.js';

/** Follows the frames of one call. */
export class CallProgress {
  #sawContent = false;
  #result: ResultFrame | undefined;
  #error: ErrorFrame | undefined;

  /** Anything but pings and unknown frames has arrived, so that the call must not be repeated in silence. */
  get sawContent(): boolean {
    return this.#sawContent;
  }

  /** The last result that no later reset has voided. */
  get result(): ResultFrame | undefined {
    return this.#result;
  }

  get error(): ErrorFrame | undefined {
    return this.#error;
  }

  apply(frame: InferenceFrame): void {
    if (frame.kind === 'ping') return;
    this.#sawContent = true;
    if (frame.kind === 'result') this.#result = frame;
    else if (frame.kind === 'error') this.#error = frame;
    else if (frame.kind === 'reset') this.#result = undefined;
  }
}

/** How an attempt failed. */
export type CallFailure =
  /** The request got no answer. */
  | { readonly kind: 'connect' }
  /** It was answered with a status other than 200, or with 200 and no body. */
  | { readonly kind: 'status'; readonly status: number }
  /** The body broke off, or a line of it can't be understood. */
  | { readonly kind: 'stream_broken' }
  /** The body ended in order, without a result. */
  | { readonly kind: 'no_result' };

export type RetryVerdict = { readonly retry: true; readonly delayMs: number } | { readonly retry: false };

/**
 * Whether the same body may be sent again.
 *
 * @param failed.sawContent of the attempt that failed
 * @param failed.attempt number of that attempt, from 1; one counter for every cause
 * @param failed.maxAttempts default: one more than there are delays, 5
 */
export function retryVerdict(failed: {
  readonly sawContent: boolean;
  readonly cause: CallFailure;
  readonly attempt: number;
  readonly maxAttempts?: number;
}): RetryVerdict {
  const { sawContent, cause, attempt, maxAttempts = RETRY_DELAYS_MS.length + 1 } = failed;
  if (attempt >= maxAttempts || sawContent || !isTransient(cause)) return { retry: false };
  const delayMs = RETRY_DELAYS_MS[attempt - 1];
  return delayMs === undefined ? { retry: false } : { retry: true, delayMs };
}

/** The message of a refusal before the stream: the server's own when it has one (protocol/inference.md 2). */
export function refusalMessage(body: string): string {
  try {
    const parsed: unknown = JSON.parse(body);
    const error = isRecord(parsed) ? parsed['error'] : undefined;
    const message = isRecord(error) ? error['message'] : undefined;
    if (typeof message === 'string' && message !== '') return message;
  } catch {
    // A proxy's page of HTML is no message for a person.
  }
  return 'Inference failed.';
}

function isTransient(cause: CallFailure): boolean {
  switch (cause.kind) {
    case 'connect':
    case 'stream_broken':
      return true;
    case 'status':
      // Not 502: a gateway's 502 doesn't show whether the upstream has begun, and billed, a generation.
      return cause.status === 503 || cause.status === 504;
    case 'no_result':
      return false;
  }
}
