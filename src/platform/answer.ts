// One complete answer of the control plane: read whole, bounded, its connection free again. Guards against a body
// that nobody reads (its socket is lost to the pool) and one that has no end. What a status means is the caller's.
import type { Readable } from 'node:stream';
import { WireError } from '../contract/wireError.js';
import { PlatformError } from './platformError.js';

/** Header names in lower case, as the wire had them. */
export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** How much of an error body goes into an error (`protocol/pool.md` 1). */
const BODY_START_CHARACTERS = 500;

export interface AnswerParts {
  readonly endpoint: string;
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly body: Buffer;
  /** Texts that must not appear in an error made from this answer. */
  readonly secrets: readonly string[];
}

/** An answer with any status; the body is in memory. */
export class HttpAnswer {
  readonly endpoint: string;
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly body: Buffer;
  readonly #secrets: readonly string[];

  constructor(parts: AnswerParts) {
    this.endpoint = parts.endpoint;
    this.status = parts.status;
    this.headers = parts.headers;
    this.body = parts.body;
    this.#secrets = parts.secrets;
  }

  text(): string {
    return this.body.toString('utf8');
  }

  /** @throws PlatformError `PLATFORM_INVALID` when the body isn't JSON */
  json(): unknown {
    try {
      return JSON.parse(this.text());
    } catch {
      // The parser's own error quotes the text, which may be full of tokens.
      throw this.unreadable(this.#isPage ? 'the answer is a web page, not JSON' : 'the answer is not JSON');
    }
  }

  /**
   * The body as a type of the wire.
   *
   * @param reader a reader of `contract`, which throws WireError
   * @throws PlatformError `PLATFORM_INVALID` when the body isn't JSON or lacks what is needed
   */
  read<T>(reader: (json: unknown) => T): T {
    const json = this.json();
    try {
      return reader(json);
    } catch (error) {
      if (error instanceof WireError) throw this.unreadable(error.message);
      throw error;
    }
  }

  /** What `Retry-After` asks for, in milliseconds from this answer; seconds and dates are understood. */
  get retryAfterMs(): number | undefined {
    const value = single(this.headers['retry-after'])?.trim();
    if (value === undefined || value === '') return undefined;
    if (/^\d{1,9}$/.test(value)) return Number(value) * 1_000;
    const atMs = Date.parse(value);
    return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - (this.dateMs ?? Date.now()));
  }

  /** The server's clock when it answered (`Date`), milliseconds since the epoch; null when it didn't say. */
  get dateMs(): number | null {
    const atMs = Date.parse(single(this.headers['date']) ?? '');
    return Number.isNaN(atMs) ? null : atMs;
  }

  /** This answer as the error that its caller can't avoid: a status that the call doesn't expect. */
  unexpected(): PlatformError {
    // Only a refusal is quoted: a success of the wrong kind may be full of fresh tokens.
    // Scrubbed before it is cut: a cut through a token would leave a part of it.
    const text = this.status >= 400 ? scrub(this.text(), this.#secrets) : '';
    const bodyStart = text.slice(0, BODY_START_CHARACTERS);
    const { code: serverCode, message: serverMessage } = serverError(text);
    const reason = (serverMessage ?? (this.#isPage ? 'a web page' : bodyStart)).replace(/\.$/, '');
    const suffix = serverCode === undefined ? '' : ` (${serverCode})`;
    const answered = reason === '' ? `${this.status}` : `${this.status}: ${reason}${suffix}`;
    return new PlatformError('PLATFORM_STATUS', `${this.endpoint}: the control plane answered ${answered}`, {
      endpoint: this.endpoint,
      status: this.status,
      serverCode,
      serverMessage,
      bodyStart,
      retryAfterMs: this.retryAfterMs,
    });
  }

  /** HTML, which no endpoint of a control plane answers with. */
  get #isPage(): boolean {
    const isHtml = single(this.headers['content-type'])?.includes('html') ?? false;
    return isHtml || /^\s*<(!doctype|html)/i.test(this.body.subarray(0, 200).toString('utf8'));
  }

  /** This answer as an error about its shape; quotes nothing of it. */
  unreadable(problem: string): PlatformError {
    return new PlatformError('PLATFORM_INVALID', `${this.endpoint}: ${problem}`, {
      endpoint: this.endpoint,
      status: this.status,
    });
  }
}

/** Replaces every occurrence of each secret. */
export function scrub(text: string, secrets: readonly string[]): string {
  return secrets.reduce(
    (clean, secret) => (secret === '' ? clean : clean.replaceAll(secret, '[REDACTED]')),
    text,
  );
}

/**
 * Reads a body to its end, or destroys it.
 *
 * @returns what was read and whether it is all; past `maxBytes` the stream is destroyed
 */
export async function readBounded(
  stream: Readable,
  maxBytes: number,
): Promise<{ readonly body: Buffer; readonly complete: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      chunks.push(chunk.subarray(0, chunk.length - (size - maxBytes)));
      // Leaving the loop destroys the stream, and with it the connection: the rest is never transferred.
      return { body: Buffer.concat(chunks), complete: false };
    }
    chunks.push(chunk);
  }
  return { body: Buffer.concat(chunks), complete: true };
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/** `{"error":{"code","message"}}` where it is that; empty texts count as absent. */
function serverError(text: string): { readonly code?: string; readonly message?: string } {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return {};
  }
  const error = member(parsed, 'error');
  const code = member(error, 'code');
  const message = member(error, 'message');
  return {
    ...(typeof code === 'string' && code !== '' ? { code: code.slice(0, BODY_START_CHARACTERS) } : {}),
    ...(typeof message === 'string' && message !== ''
      ? { message: message.slice(0, BODY_START_CHARACTERS) }
      : {}),
  };
}

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && key in value ? Reflect.get(value, key) : undefined;
}
