// The failures that a run or a call of its program ends with, and how a thrown value becomes one (protocol/program.md
// 8.1, protocol/sdk.md 5.5). It guards against stacks, secrets and megabytes of message in a finalize.

import type { RunError } from '../contract/runControl.js';
import type { StopReason } from '../contract/fleetCalls.js';
import { redact } from '../redaction/redact.js';
import type { SecretSet } from '../redaction/secretSet.js';

const CODE = /^[A-Z][A-Z0-9_]{0,63}$/;
/** protocol/run-control.md 4.3: 8 kB, counted in characters here. */
const MESSAGE_CHARS = 8_000;

/** A failure with a code, for the program or for the finalize. The message is for a person. */
export class RunFailure extends Error {
  override readonly name = 'RunFailure';
  readonly code: string;
  readonly hint: string | undefined;
  /** Sent along to the program as `data`. */
  readonly data: Readonly<Record<string, unknown>> | undefined;

  constructor(
    code: string,
    message: string,
    options: {
      readonly hint?: string | undefined;
      readonly data?: Readonly<Record<string, unknown>>;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.data = options.data;
  }
}

/** What every call fails with once the run is to stop; run-fatal in the program. */
export function cancelled(reason: StopReason): RunFailure {
  return new RunFailure('CANCELLED', `The run was stopped: ${reason}.`, { data: { reason } });
}

/** What this version can't do yet; `what` begins the sentence. */
export function notAvailable(what: string): RunFailure {
  return new RunFailure('UNSUPPORTED', `${what} is not available in boardwalk-fleet 0.1 yet.`);
}

/** A thrown value, as far as it can be told; every member may be anything. */
export interface Thrown {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly hint?: unknown;
}

export function isErrorCode(code: unknown): code is string {
  return typeof code === 'string' && CODE.test(code);
}

/** The error of the finalize: code, message and hint only, without secrets, bounded. */
export function curate(thrown: Thrown, secrets: SecretSet): RunError {
  const { name, message, hint } = thrown;
  const code = isErrorCode(thrown.code)
    ? thrown.code
    : typeof name === 'string' && name !== ''
      ? name
      : 'PROGRAM_ERROR';
  const clean = (text: string, chars: number): string => cut(redact(text, secrets), chars);
  return {
    code: clean(code, 64),
    message: clean(
      typeof message === 'string' ? message : 'The program failed without a message.',
      MESSAGE_CHARS,
    ),
    ...(typeof hint === 'string' && hint !== '' ? { hint: clean(hint, MESSAGE_CHARS) } : {}),
  };
}

/** The error frame for a value that a host call threw. */
export function toWireError(error: unknown): { code: string; message: string; data?: unknown } {
  if (error instanceof RunFailure) {
    const data = { ...error.data, ...(error.hint === undefined ? {} : { hint: error.hint }) };
    return { code: error.code, message: error.message, ...(Object.keys(data).length > 0 ? { data } : {}) };
  }
  if (error instanceof Error) {
    const code: unknown = 'code' in error ? error.code : undefined;
    return { code: isErrorCode(code) ? code : error.name || 'INTERNAL', message: error.message };
  }
  return { code: 'INTERNAL', message: String(error) };
}

/** Cuts a text without leaving half a character; says so when it did. */
export function cut(text: string, chars: number, mark = '…'): string {
  if (text.length <= chars) return text;
  const last = text.charCodeAt(chars - 1);
  const end = last >= 0xd8_00 && last <= 0xdb_ff ? chars - 1 : chars;
  return text.slice(0, end) + mark;
}
