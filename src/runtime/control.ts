// The client of the gateway: run-control calls over one Unix socket. It guards against calls that never return (each
// has a named timeout, a model call alone has none) and against calls made twice: the gateway retries, so here only a
// connection that was refused or not there yet is tried again.

import { Agent, type IncomingMessage, request as httpRequest } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { redact } from '../redaction/redact.js';
import type { SecretSet } from '../redaction/secretSet.js';

/** Named timeouts in ms. The gateway spends 25 s on retries of a passed-on call, and longer while Redis is away. */
export const CALL_TIMEOUT_MS = {
  control: 30_000,
  download: 300_000,
  /** Rows and finalize wait in the gateway through an outage of Redis (about 35 s). */
  lane: 120_000,
} as const;

/** Pauses before connects two to eight: the socket of a warm or slow gateway is there within a second. */
const CONNECT_DELAYS_MS = [25, 50, 100, 200, 400, 800, 1_600] as const;
/** A full backlog of a Unix socket is EAGAIN. */
const NOT_CONNECTED: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOENT', 'EAGAIN']);
const ANSWER_BYTES = 32 * 1024 * 1024;
const QUOTED_CHARS = 500;
/** Far more than is quoted, and still quick to look through. */
const READ_BYTES = 64 * 1024;
/** Statuses below 500 that say "later". */
const LATER: ReadonlySet<number> = new Set([408, 425, 429]);
/** Model calls have connections of their own, so that many of them can't keep rows or the finalize waiting. */
const CONTROL_SOCKETS = 32;
const STREAM_SOCKETS = 256;

export interface ControlCall {
  /** For error texts: `secrets/resolve`. */
  readonly name: string;
  readonly method: 'GET' | 'POST';
  /** Below `/runner/v1/runs/<id>/`, or an absolute path on the gateway. */
  readonly path: string;
  readonly body?: unknown;
  readonly accept?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

export interface ControlAnswer {
  readonly status: number;
  readonly body: Buffer;
}

/** No answer came. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: 'GATEWAY_UNREACHABLE' | 'GATEWAY_TIMEOUT';

  constructor(code: GatewayError['code'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** An answer with a status that this call has no meaning for (protocol/run-control.md 1). */
export class UnexpectedAnswer extends Error {
  override readonly name = 'UnexpectedAnswer';
  readonly status: number;

  constructor(call: string, answer: ControlAnswer, secrets: SecretSet) {
    // Cut last: a part of a secret would not be recognised.
    const quoted = redact(answer.body.toString('utf8', 0, READ_BYTES), secrets).slice(0, QUOTED_CHARS);
    super(`${call} was answered with status ${answer.status}: ${quoted}`);
    this.status = answer.status;
  }

  /** Whether the same call may be answered another way later. */
  get isPassing(): boolean {
    return this.status >= 500 || LATER.has(this.status);
  }
}

export interface ControlOptions {
  readonly socketPath: string;
  readonly bearer: string;
  readonly runId: string;
  readonly secrets: SecretSet;
  /** The gateway said 410: this attempt has lost its run. Called before the call returns. */
  readonly onFenced: () => void;
}

export class Control {
  readonly #options: ControlOptions;
  readonly #base: string;
  readonly #calls = new Agent({ keepAlive: true, maxSockets: CONTROL_SOCKETS });
  readonly #streams = new Agent({ keepAlive: true, maxSockets: STREAM_SOCKETS });

  constructor(options: ControlOptions) {
    this.#options = options;
    this.#base = `/runner/v1/runs/${encodeURIComponent(options.runId)}/`;
  }

  /**
   * One call with its whole answer.
   *
   * @throws GatewayError when no answer came within `timeoutMs`; the signal's reason when it was aborted
   */
  async call(call: ControlCall, timeoutMs: number): Promise<ControlAnswer> {
    const ended = new AbortController();
    const end = (): void => ended.abort();
    const timer = setTimeout(end, timeoutMs);
    call.signal?.addEventListener('abort', end, { once: true });
    try {
      call.signal?.throwIfAborted();
      const response = await this.#connected(call, ended.signal, this.#calls);
      const body = await wholeBody(response).catch((error: unknown) => {
        throw unreachable(call, error);
      });
      const answer = { status: response.statusCode ?? 0, body };
      if (answer.status === 410) this.#options.onFenced();
      return answer;
    } catch (error) {
      call.signal?.throwIfAborted();
      if (ended.signal.aborted)
        throw new GatewayError('GATEWAY_TIMEOUT', `${call.name} was not answered within ${timeoutMs} ms`);
      throw error;
    } finally {
      clearTimeout(timer);
      call.signal?.removeEventListener('abort', end);
    }
  }

  /** One call with a streamed answer; without a timeout, ended by the signal. @throws as {@link call} */
  async stream(call: ControlCall): Promise<{ readonly status: number; readonly body: IncomingMessage }> {
    const response = await this.#connected(call, call.signal, this.#streams);
    if (response.statusCode === 410) this.#options.onFenced();
    return { status: response.statusCode ?? 0, body: response };
  }

  /** For an answer that the caller has no use for. */
  unexpected(call: ControlCall, answer: ControlAnswer): UnexpectedAnswer {
    return new UnexpectedAnswer(call.name, answer, this.#options.secrets);
  }

  close(): void {
    this.#calls.destroy();
    this.#streams.destroy();
  }

  async #connected(
    call: ControlCall,
    signal: AbortSignal | undefined,
    agent: Agent,
  ): Promise<IncomingMessage> {
    for (const pauseMs of CONNECT_DELAYS_MS) {
      try {
        return await this.#send(call, signal, agent);
      } catch (error) {
        signal?.throwIfAborted();
        if (!NOT_CONNECTED.has(errnoOf(error))) throw unreachable(call, error);
      }
      await delay(pauseMs, undefined, signal === undefined ? {} : { signal });
    }
    try {
      return await this.#send(call, signal, agent);
    } catch (error) {
      signal?.throwIfAborted();
      throw unreachable(call, error);
    }
  }

  async #send(call: ControlCall, signal: AbortSignal | undefined, agent: Agent): Promise<IncomingMessage> {
    const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body));
    return new Promise((resolve, reject) => {
      const request = httpRequest({
        agent,
        socketPath: this.#options.socketPath,
        method: call.method,
        path: call.path.startsWith('/') ? call.path : this.#base + call.path,
        headers: {
          host: 'gateway',
          authorization: `Bearer ${this.#options.bearer}`,
          accept: call.accept ?? 'application/json',
          ...call.headers,
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': body.byteLength }),
        },
        ...(signal === undefined ? {} : { signal }),
      });
      // Stays on after the answer: a connection that breaks later must not be an uncaught error.
      request.on('error', reject);
      request.once('response', resolve);
      request.end(body);
    });
  }
}

/** JSON of an answer. @throws Error that doesn't quote the body, which may be a secret */
export function jsonOf(call: string, body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    throw new Error(`${call} was not answered with JSON`);
  }
}

async function wholeBody(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > ANSWER_BYTES)
      throw new GatewayError('GATEWAY_UNREACHABLE', `an answer is larger than ${ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}

function unreachable(call: ControlCall, cause: unknown): GatewayError {
  return cause instanceof GatewayError
    ? cause
    : new GatewayError(
        'GATEWAY_UNREACHABLE',
        `${call.name}: the gateway can't be reached (${String(errnoOf(cause) ?? cause)})`,
        cause,
      );
}

function errnoOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
