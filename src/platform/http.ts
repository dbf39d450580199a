// The one HTTP client towards the control plane: one dispatcher, named timeouts, one retry policy, bounded answers.
// Guards against calls that hang, bodies that nobody reads, hot retries, and (`redirect`) a body or a bearer that follows
// a redirect to another origin. It leaves out what statuses mean (poolClient, runClient) and what goes through a proxy
// (proxy.ts, connections.ts).
import type { Readable } from 'node:stream';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import { RETRIED_STATUSES } from '../contract/callPolicy.js';
import { type AnswerHeaders, HttpAnswer, readBounded } from './answer.js';
import { abortedError, AttemptClock, attemptError, type FailedAttempt } from './attempt.js';
import { pause } from '../waiting/waiting.js';
import { type Random, retryDelay } from './backoff.js';
import { Connections } from './connections.js';
import { PlatformError } from './platformError.js';
import { type Hop, type HttpMethod, nextHop } from './redirect.js';

export type { HttpMethod } from './redirect.js';

/** Milliseconds (`protocol/pool.md` 1, `protocol/run-control.md` 1). */
export const PLATFORM_TIMEOUTS = {
  /** TCP and TLS. */
  connectMs: 10_000,
  /** One attempt of an ordinary call, body included. */
  controlMs: 30_000,
  /** One poll: the server holds it for about 22 s. */
  longPollMs: 60_000,
  /** One attempt of a download or upload. */
  bulkMs: 300_000,
} as const;

/** Below the idle cut-offs of common servers and proxies (Node 5 s, others 15 to 60 s), so that they never cut first. */
const KEEP_ALIVE_MS = 4_000;

/** Ordinary answers are small; a hydrated manifest is the largest. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/**
 * - `none`: one attempt
 * - `transient`: up to five, after a network error, a timeout, or a 502, 503 or 504; after the last one its answer is
 *   returned, its error thrown
 */
export type RetryPolicy = 'none' | 'transient';

interface CallBase {
  /** The endpoint as people say it, for errors and logs: `poll`. Never a URL. */
  readonly name: string;
  readonly method: HttpMethod;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Uint8Array | undefined;
  /** Sent as `Authorization: Bearer`, kept out of errors, dropped on a redirect to another origin. */
  readonly bearer?: string | undefined;
  /** Further texts of this call that no error may quote. */
  readonly secrets?: readonly string[] | undefined;
  /** Ends the call at once, in an attempt and between two; `PLATFORM_ABORTED`. */
  readonly signal?: AbortSignal | undefined;
}

export interface HttpCall extends CallBase {
  readonly retry: RetryPolicy;
  /** One attempt, connect to last byte. Default `PLATFORM_TIMEOUTS.controlMs`. */
  readonly timeoutMs?: number | undefined;
  /** All attempts and waits together, in milliseconds from the call; no attempt outlives it. Default: no bound. */
  readonly deadlineMs?: number | undefined;
  /** A longer successful answer is `PLATFORM_INVALID`; a longer error body is cut. Default 8 MiB. */
  readonly maxBytes?: number | undefined;
}

export interface StreamCall extends CallBase {
  /** The whole of it, body included; 0 = without end (inference). */
  readonly timeoutMs: number;
  /** Longest silence before the headers and between two chunks; 0 = without end. Default 0. */
  readonly idleTimeoutMs?: number | undefined;
}

export interface StreamAnswer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  /** Must be read to its end or destroyed. An error of it means: cut, silent for too long, or aborted. */
  readonly body: Readable;
}

export interface PlatformHttpOptions {
  readonly userAgent: string;
  readonly log?: Logger | undefined;
  readonly timeouts?: { readonly connectMs?: number } | undefined;
  readonly random?: Random | undefined;
  /** Whose `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` hold. Default: no proxy. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
}

/** The HTTP client of a process. `close` it at the end: it holds connections. */
export class PlatformHttp {
  readonly #connections: Connections;
  readonly #userAgent: string;
  readonly #log: Logger | undefined;
  readonly #random: Random;
  #closing: Promise<void> | undefined;

  /** @throws OperatorError `SETTING_INVALID` when the environment names a proxy that can't be one */
  constructor(options: PlatformHttpOptions) {
    this.#connections = new Connections(options.environment ?? {}, {
      connectMs: options.timeouts?.connectMs ?? PLATFORM_TIMEOUTS.connectMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      pipelining: 1,
    });
    this.#userAgent = options.userAgent;
    this.#log = options.log;
    this.#random = options.random ?? Math.random;
  }

  /**
   * Makes a call and reads its answer whole.
   *
   * @returns an answer of any status
   * @throws PlatformError when no answer came: unreachable, timeout, aborted, unreadable
   */
  async request(call: HttpCall): Promise<HttpAnswer> {
    const timeoutMs = call.timeoutMs ?? PLATFORM_TIMEOUTS.controlMs;
    const endsAt = performance.now() + (call.deadlineMs ?? Infinity);
    for (let failures = 1; ; failures++) {
      const result = await this.#attempt(call, Math.min(timeoutMs, Math.max(1, endsAt - performance.now())));
      const again = call.retry === 'transient' && isTransient(result);
      const delayMs = again ? retryDelay(failures, result.retryAfterMs, this.#random) : null;
      if (delayMs === null || performance.now() + delayMs >= endsAt) {
        if (result instanceof PlatformError) throw result;
        return result;
      }
      this.#log?.debug(
        { endpoint: call.name, failures, delayMs: Math.round(delayMs), status: result.status },
        'call is tried again',
      );
      if (!(await pause(delayMs, call.signal, { ref: true }))) throw abortedError(call.name);
    }
  }

  /**
   * Makes a call once and hands its body on as it comes. Retrying is the caller's: only it knows what was used.
   *
   * @throws PlatformError when no headers came
   */
  async stream(call: StreamCall): Promise<StreamAnswer> {
    const clock = new AttemptClock(call.timeoutMs, call.signal);
    try {
      const { statusCode, headers, body } = await this.#send(call, clock, call.idleTimeoutMs ?? 0);
      body.once('close', () => clock.end());
      // The client reports a body that is destroyed unread as an error; without a listener that ends the process.
      body.on('error', () => undefined);
      return { status: statusCode, headers, body };
    } catch (thrown) {
      clock.end();
      throw attemptError(thrown, clock, this.#failed(call, call.timeoutMs));
    }
  }

  /** Cuts what is in flight and closes all connections. Safe to call twice. */
  close(): Promise<void> {
    this.#closing ??= this.#connections.destroy();
    return this.#closing;
  }

  async #attempt(call: HttpCall, timeoutMs: number): Promise<HttpAnswer | PlatformError> {
    const clock = new AttemptClock(timeoutMs, call.signal);
    try {
      const response = await this.#send(call, clock, timeoutMs);
      const { body, complete } = await readBounded(response.body, call.maxBytes ?? MAX_ANSWER_BYTES);
      const answer = new HttpAnswer({
        endpoint: call.name,
        status: response.statusCode,
        headers: response.headers,
        body,
        secrets: this.#secretsOf(call),
      });
      if (!complete && answer.status < 400) return answer.unreadable('the answer is too large');
      return answer;
    } catch (thrown) {
      return attemptError(thrown, clock, this.#failed(call, timeoutMs));
    } finally {
      clock.end();
    }
  }

  async #send(call: CallBase, clock: AttemptClock, silenceMs: number): Promise<Dispatcher.ResponseData> {
    const { name, url, method, body, bearer } = call;
    let hop: Hop = { url, method, hasBody: body !== undefined, hasBearer: bearer !== undefined, nth: 0 };
    for (;;) {
      const response = await this.#sendOnce(call, hop, clock, silenceMs);
      const next = nextHop(name, hop, response);
      if (next === null) return response;
      // Read to its end, so that the connection is free again.
      await response.body.dump().catch(() => undefined);
      if (next instanceof PlatformError) throw next;
      hop = next;
    }
  }

  #failed(call: CallBase, timeoutMs: number): FailedAttempt {
    const proxy = this.#connections.proxyFor(call.url);
    return { endpoint: call.name, url: call.url, timeoutMs, secrets: this.#secretsOf(call), proxy };
  }

  #secretsOf({ bearer, secrets = [] }: CallBase): readonly string[] {
    return [...(bearer === undefined ? [] : [bearer]), ...secrets, ...this.#connections.secrets];
  }

  #sendOnce(
    call: CallBase,
    hop: Hop,
    clock: AttemptClock,
    silenceMs: number,
  ): Promise<Dispatcher.ResponseData> {
    const body = hop.hasBody ? (call.body ?? null) : null;
    return this.#connections.request(new URL(hop.url), {
      method: hop.method,
      headers: {
        'user-agent': this.#userAgent,
        ...call.headers,
        ...(hop.hasBearer && call.bearer !== undefined ? { authorization: `Bearer ${call.bearer}` } : {}),
      },
      body: body === null || typeof body === 'string' ? body : Buffer.from(body),
      signal: clock.signal,
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
    });
  }
}

function isTransient(result: HttpAnswer | PlatformError): boolean {
  if (result instanceof HttpAnswer) return RETRIED_STATUSES.has(result.status);
  return result.code === 'PLATFORM_UNREACHABLE' || result.code === 'PLATFORM_TIMEOUT';
}
