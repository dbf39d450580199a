// What goes from an answer of the control plane to the sandbox: status, body and the few headers that mean something
// to a client. Everything else (cookies, connection headers, encodings of a hop) stays here.

import type { Readable } from 'node:stream';
import { type AnswerHeaders, readBounded } from '../../platform/answer.js';
import type { PlatformError } from '../../platform/platformError.js';
import { Refusal } from './answers.js';

const PASSED_HEADERS = ['content-type', 'retry-after'] as const;
/** Of a streamed call that was answered with an error. */
const ERROR_BODY_BYTES = 256 * 1024;

export interface PassedAnswer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly body: Buffer;
}

export function passedHeaders(headers: AnswerHeaders): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name of PASSED_HEADERS) {
    const value = headers[name];
    if (typeof value === 'string') passed[name] = value;
  }
  return passed;
}

/** The body of an error answer; what broke or is too long is cut, because the status already says enough. */
export async function wholeBody(body: Readable): Promise<Buffer> {
  try {
    return (await readBounded(body, ERROR_BODY_BYTES)).body;
  } catch {
    return Buffer.alloc(0);
  }
}

/** A body from upstream broke off. */
export class BodyBroke extends Error {
  override readonly name = 'BodyBroke';
}

/** The chunks of a body from upstream; only its own failure is a {@link BodyBroke}, not one of whoever uses them. */
export async function* chunksOf(body: Readable): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) yield chunk;
  } catch (cause) {
    throw new BodyBroke('the body from upstream broke off', { cause });
  }
}

/** After the last try. A client that knows the protocol takes 502 and 504 for "try later". */
export function unreachable(error: PlatformError): Refusal {
  switch (error.code) {
    case 'PLATFORM_TIMEOUT':
      return new Refusal(504, 'CONTROL_PLANE_TIMEOUT', 'The control plane did not answer in time.');
    case 'PLATFORM_INVALID':
      return new Refusal(502, 'CONTROL_PLANE_INVALID', "The control plane's answer can't be used.");
    default:
      return new Refusal(502, 'CONTROL_PLANE_UNREACHABLE', "The control plane can't be reached.");
  }
}
