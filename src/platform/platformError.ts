// Why a call to the control plane gave nothing usable, told apart so that callers can retry, park or stop.
// Guards against errors that quote a token: the texts of a server pass through here, scrubbed, or not at all. URLs
// are reduced to their origin, because a presigned one is a credential. What each outcome leads to is the caller's.
import { OperatorError } from '../contract/operatorError.js';

/**
 * - `PLATFORM_STATUS` an answer with a status that the call doesn't expect (`status`, `serverCode`, `serverMessage`)
 * - `PLATFORM_UNREACHABLE` no connection, or one that broke before the answer was complete
 * - `PLATFORM_TIMEOUT` a named timeout or the call's deadline passed
 * - `PLATFORM_INVALID` an answer that can't be read: not JSON, a missing field, too large; or a call that can't be made
 * - `PLATFORM_ABORTED` the caller's signal
 */
export type PlatformErrorCode =
  'PLATFORM_STATUS' | 'PLATFORM_UNREACHABLE' | 'PLATFORM_TIMEOUT' | 'PLATFORM_INVALID' | 'PLATFORM_ABORTED';

export interface PlatformErrorDetails {
  /** The endpoint's name as people say it, e.g. `poll`. */
  readonly endpoint: string;
  readonly status?: number | undefined;
  /** `error.code` of a JSON error body. */
  readonly serverCode?: string | undefined;
  /** `error.message` of a JSON error body. */
  readonly serverMessage?: string | undefined;
  /** First 500 characters of the body (`protocol/run-control.md` 1), tokens of the call removed. */
  readonly bodyStart?: string | undefined;
  /** What `Retry-After` asks for, in milliseconds from the answer. */
  readonly retryAfterMs?: number | undefined;
  readonly hint?: string | undefined;
  readonly cause?: unknown;
}

/** A failed call to the control plane. Fit for a person; never carries a token, a header or a URL's path. */
export class PlatformError extends OperatorError {
  override readonly name = 'PlatformError';
  override readonly code: PlatformErrorCode;
  readonly endpoint: string;
  readonly status: number | undefined;
  readonly serverCode: string | undefined;
  readonly serverMessage: string | undefined;
  readonly bodyStart: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: PlatformErrorCode, message: string, details: PlatformErrorDetails) {
    super(code, message, {
      ...(details.hint === undefined ? {} : { hint: details.hint }),
      ...(details.cause === undefined ? {} : { cause: details.cause }),
    });
    this.code = code;
    this.endpoint = details.endpoint;
    this.status = details.status;
    this.serverCode = details.serverCode;
    this.serverMessage = details.serverMessage;
    this.bodyStart = details.bodyStart;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** The member that every union of call outcomes has. */
export interface CallFailed {
  readonly outcome: 'failed';
  readonly error: PlatformError;
}

/** Turns a thrown PlatformError into an outcome; anything else thrown is a bug and stays thrown. */
export async function failuresAsOutcome<T>(call: () => Promise<T>): Promise<T | CallFailed> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof PlatformError) return { outcome: 'failed', error };
    throw error;
  }
}
