// What a run token may say (`protocol/run-control.md`): the calls that we make for a run ourselves, and those that a
// sandbox makes through the gateway. Guards against two readings of one status (a lost lease, a refused batch), and
// against a sandbox that picks an endpoint outside its run. When a batch or a finalize is sent again is the shipper's.
import { readCancel, readCredit, readRenew, readRunClaim } from '../contract/runControl.js';
import type { HttpAnswer } from './answer.js';
import { below, controlPlaneBase, encodeSegment, JSON_HEADERS } from './endpoints.js';
import { type HttpCall, type HttpMethod, type PlatformHttp, PLATFORM_TIMEOUTS } from './http.js';
import { failuresAsOutcome, PlatformError } from './platformError.js';
import type {
  CallRefused,
  CancelOutcome,
  CreditOutcome,
  DeliveryOutcome,
  ForwardOutcome,
  ForwardStreamOutcome,
  RenewOutcome,
  RunClaimOutcome,
} from './runOutcomes.js';

/** Waiting and retrying together; the gateway's bound for one call of a sandbox (design section 7). */
export const CALL_DEADLINE_MS = 25_000;

/** Statuses that say "later", although they are of the class that says "no". */
const LATER: ReadonlySet<number> = new Set([408, 425, 429]);

/** Headers of one connection, and those that are ours to set; a compressed stream could not be read line by line. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'authorization',
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export interface RunClientOptions {
  /** `control_plane.base_url` of the claim. */
  readonly baseUrl: string;
  readonly runId: string;
  readonly runToken: string;
}

export interface LeaseRequest {
  readonly workerId: string;
  readonly leaseSeconds: number;
  readonly signal?: AbortSignal | undefined;
  /** All attempts together. Default 25 s. */
  readonly deadlineMs?: number | undefined;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface ForwardedCall {
  readonly method: HttpMethod;
  /** Path below `/runner/v1/runs/{id}/`, percent-encoded as it came. */
  readonly suffix: string;
  /** Text after `?`, without it. */
  readonly query?: string | undefined;
  readonly body?: string | Uint8Array | undefined;
  /** The sandbox's; headers of its connection and its bearer are left out. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
}

export class RunClient {
  readonly #http: PlatformHttp;
  readonly #token: string;
  readonly #prefix: string;

  /** @throws OperatorError `CONTROL_PLANE_URL`; PlatformError `PLATFORM_INVALID` when the run id fits no path */
  constructor(http: PlatformHttp, options: RunClientOptions) {
    const segment = encodeSegment(options.runId);
    if (segment === null) {
      throw new PlatformError('PLATFORM_INVALID', 'the run id can not be part of a path', {
        endpoint: 'run',
      });
    }
    this.#http = http;
    this.#token = options.runToken;
    this.#prefix = `${controlPlaneBase(options.baseUrl)}/runner/v1/runs/${segment}/`;
  }

  /** Claims the run lease. Retried: a repeat by the same worker is answered as the first (4.1). */
  async claim(request: LeaseRequest): Promise<RunClaimOutcome> {
    return failuresAsOutcome(async () => {
      const answer = await this.#lease('run claim', 'claim', request);
      if (answer.status === 409) return { outcome: 'held' };
      if (answer.status !== 201 && answer.status !== 200) return refusedOrThrow(answer);
      return { outcome: 'claimed', claim: answer.read(readRunClaim), serverDateMs: answer.dateMs };
    });
  }

  /** Renews the run lease; retried within the deadline. */
  async renew(request: LeaseRequest): Promise<RenewOutcome> {
    return failuresAsOutcome(async () => {
      const answer = await this.#lease('run renew', 'renew', request);
      if (answer.status === 409) return { outcome: 'lost' };
      if (answer.status !== 200) throw answer.unexpected();
      const { leaseUntil } = answer.read(readRenew);
      return { outcome: 'renewed', leaseUntil, serverDateMs: answer.dateMs };
    });
  }

  /** One look at the cancel flag; the next tick is the retry. */
  async cancel(options: CallOptions = {}): Promise<CancelOutcome> {
    return failuresAsOutcome(async () => {
      const answer = await this.#get('cancel', options);
      return { outcome: 'answered', cancelRequested: answer.read(readCancel).cancelRequested };
    });
  }

  /** One look at the credit; the next tick is the retry. */
  async credit(options: CallOptions = {}): Promise<CreditOutcome> {
    return failuresAsOutcome(async () => {
      const answer = await this.#get('credit', options);
      return { outcome: 'answered', funded: answer.read(readCredit).funded };
    });
  }

  /** Sends rows, each a JSON text `{cursor, event}`. One attempt: the lane keeps its head until they are accepted. */
  telemetry(frames: readonly string[], options: CallOptions = {}): Promise<DeliveryOutcome> {
    return this.#deliver('telemetry', JSON.stringify({ frames }), options);
  }

  /** Sends the run's end; `body` is the call's body, or its JSON text. One attempt, as telemetry. */
  finalize(body: object | string, options: CallOptions = {}): Promise<DeliveryOutcome> {
    return this.#deliver('finalize', typeof body === 'string' ? body : JSON.stringify(body), options);
  }

  /** A sandbox's call, retried while that is safe (every such call may arrive twice, section 1) and time is left. */
  async forward(
    call: ForwardedCall & {
      /** All attempts together. Default 25 s. */
      readonly deadlineMs?: number | undefined;
    },
  ): Promise<ForwardOutcome> {
    return failuresAsOutcome(async () => {
      const { status, headers, body } = await this.#http.request({
        ...this.#forwarded(call),
        retry: 'transient',
        deadlineMs: call.deadlineMs ?? CALL_DEADLINE_MS,
      });
      return { outcome: 'answered', status, headers, body };
    });
  }

  /** A sandbox's call whose answer is handed on as it comes. One attempt, without an end (`protocol/inference.md` 2). */
  async forwardStream(
    call: ForwardedCall & {
      /** Longest silence, before the headers too; 0 = without end, the default. */
      readonly idleTimeoutMs?: number | undefined;
    },
  ): Promise<ForwardStreamOutcome> {
    return failuresAsOutcome(async () => {
      const { status, headers, body } = await this.#http.stream({
        ...this.#forwarded(call),
        timeoutMs: 0,
        idleTimeoutMs: call.idleTimeoutMs,
      });
      return { outcome: 'answered', status, headers, body };
    });
  }

  #lease(name: string, suffix: string, request: LeaseRequest): Promise<HttpAnswer> {
    return this.#http.request({
      name,
      method: 'POST',
      url: this.#prefix + suffix,
      headers: JSON_HEADERS,
      body: JSON.stringify({ workerId: request.workerId, leaseSeconds: request.leaseSeconds }),
      bearer: this.#token,
      signal: request.signal,
      retry: 'transient',
      deadlineMs: request.deadlineMs ?? CALL_DEADLINE_MS,
    });
  }

  async #get(suffix: string, options: CallOptions): Promise<HttpAnswer> {
    const answer = await this.#http.request({
      name: suffix,
      method: 'GET',
      url: this.#prefix + suffix,
      headers: { accept: 'application/json' },
      bearer: this.#token,
      signal: options.signal,
      retry: 'none',
    });
    if (answer.status !== 200) throw answer.unexpected();
    return answer;
  }

  #deliver(suffix: 'telemetry' | 'finalize', body: string, options: CallOptions): Promise<DeliveryOutcome> {
    return failuresAsOutcome(async () => {
      const answer = await this.#http.request({
        name: suffix,
        method: 'POST',
        url: this.#prefix + suffix,
        headers: JSON_HEADERS,
        body,
        bearer: this.#token,
        signal: options.signal,
        timeoutMs: PLATFORM_TIMEOUTS.controlMs,
        retry: 'none',
      });
      if (answer.status === 204) return { outcome: 'accepted' };
      // Something in between may answer 200 with a page of its own: that would be taken for rows that are stored.
      if (answer.status >= 200 && answer.status < 300) {
        if (answer.body.length > 0) answer.json();
        return { outcome: 'accepted' };
      }
      return refusedOrThrow(answer);
    });
  }

  #forwarded(call: ForwardedCall): Omit<HttpCall, 'retry'> {
    const name = `run call ${call.suffix.slice(0, 60)}`;
    const url = below(this.#prefix, call.suffix, call.query);
    if (url === null) {
      throw new PlatformError('PLATFORM_INVALID', `${name}: the path leads out of the run`, {
        endpoint: name,
      });
    }
    const headers = Object.fromEntries(
      Object.entries(call.headers ?? {}).filter(([header]) => !OWN_HEADERS.has(header.toLowerCase())),
    );
    return {
      name,
      method: call.method,
      url,
      headers,
      body: call.body,
      bearer: this.#token,
      signal: call.signal,
    };
  }
}

/** Said of who speaks, not of what is said. Proxies say them too, in words of their own. */
const OF_ACCESS: ReadonlySet<number> = new Set([401, 403, 404, 409]);

/** @throws PlatformError for a status that may be another one later, or that is not the platform's word */
function refusedOrThrow(answer: HttpAnswer): CallRefused {
  const error = answer.unexpected();
  if (answer.status < 400 || answer.status >= 500 || LATER.has(answer.status)) throw error;
  if (OF_ACCESS.has(answer.status) && (error.serverCode ?? error.serverMessage) === undefined) throw error;
  return { outcome: 'refused', status: answer.status, body: error.bodyStart ?? '', error };
}
