// What a runner identity may say: register, poll, claim, heartbeat (`protocol/pool.md`). Guards against
// answers read too strictly (one added field would strand a claimed run, R10) and statuses that each caller would
// interpret anew: they become outcomes here. When to call, and what an outcome leads to, is the poller's.
import {
  type ClaimResponse,
  type HeartbeatPhase,
  type HeartbeatResponse,
  type Offer,
  type RegisterResponse,
  readClaimResponse,
  readHeartbeatResponse,
  readPollResponse,
  readRegisterResponse,
} from '../contract/pool.js';
import type { HttpAnswer } from './answer.js';
import { type HttpCall, type PlatformHttp, PLATFORM_TIMEOUTS } from './http.js';
import { controlPlaneBase, encodeSegment, JSON_HEADERS } from './endpoints.js';
import { failuresAsOutcome, PlatformError } from './platformError.js';

/** Revision of the pool wire that we speak (`protocol/pool.md` 4). */
const CONTRACT_VERSION = 1;

/** A lost answer may be asked for again for this long: a claim that the server never saw is still ours to win. */
const CLAIM_DEADLINE_MS = 15_000;

export type PollOutcome =
  | { readonly outcome: 'offer'; readonly offer: Offer; readonly drain: boolean }
  | { readonly outcome: 'empty'; readonly drain: boolean }
  /** The token is revoked, or this version or runner is barred: polling again can't help. */
  | { readonly outcome: 'refused'; readonly status: 401 | 403; readonly message: string }
  | { readonly outcome: 'failed'; readonly error: PlatformError; readonly retryAfterMs: number | undefined };

export type ClaimOutcome =
  | { readonly outcome: 'claimed'; readonly claim: ClaimResponse; readonly serverDateMs: number | null }
  /** Somebody else has it, or it was withdrawn. */
  | { readonly outcome: 'lost' }
  /** 401 and 403 too: a lasting refusal surfaces on the next poll (`protocol/pool.md` 6.1). */
  | { readonly outcome: 'failed'; readonly error: PlatformError };

export type HeartbeatOutcome =
  | {
      readonly outcome: 'renewed';
      readonly leaseExpiresAtMs: number;
      /** The server's clock when it answered; null when it didn't say. */
      readonly serverDateMs: number | null;
      readonly action: HeartbeatResponse['action'];
    }
  | { readonly outcome: 'lost' }
  | { readonly outcome: 'failed'; readonly error: PlatformError };

export type RegisterOutcome =
  | { readonly outcome: 'registered'; readonly registration: RegisterResponse }
  | { readonly outcome: 'failed'; readonly error: PlatformError };

export interface Registration {
  readonly controlPlaneUrl: string;
  readonly registrationToken: string;
  readonly name: string;
  readonly labels: readonly string[];
  readonly os?: 'linux' | 'macos' | 'windows' | undefined;
  readonly arch?: 'x64' | 'arm64' | undefined;
  readonly runnerVersion?: string | undefined;
}

export interface PoolClientOptions {
  /** Origin and optional path of the control plane. */
  readonly controlPlaneUrl: string;
  readonly runnerToken: string;
  /** Display only. Default `0.0.0`. */
  readonly runnerVersion?: string | undefined;
}

export class PoolClient {
  readonly #http: PlatformHttp;
  readonly #base: string;
  readonly #token: string;
  readonly #declaration: string;

  /** @throws OperatorError `CONTROL_PLANE_URL` */
  constructor(http: PlatformHttp, options: PoolClientOptions) {
    this.#http = http;
    this.#base = `${controlPlaneBase(options.controlPlaneUrl)}/runner/v1/pool`;
    this.#token = options.runnerToken;
    this.#declaration = JSON.stringify({
      contract_version: CONTRACT_VERSION,
      runner_version: options.runnerVersion ?? '0.0.0',
    });
  }

  /**
   * Enrols a machine with a one-time token; not retried, because the token may have been spent by the first try.
   *
   * @throws OperatorError `CONTROL_PLANE_URL`
   */
  static async register(http: PlatformHttp, registration: Registration): Promise<RegisterOutcome> {
    const url = `${controlPlaneBase(registration.controlPlaneUrl)}/runner/v1/register`;
    const body = {
      registration_token: registration.registrationToken,
      name: registration.name,
      labels: registration.labels,
      os: registration.os,
      arch: registration.arch,
      runner_version: registration.runnerVersion,
    };
    return failuresAsOutcome(async () => {
      const answer = await http.request({
        name: 'register',
        method: 'POST',
        url,
        headers: JSON_HEADERS,
        body: JSON.stringify(body),
        secrets: [registration.registrationToken],
        retry: 'none',
      });
      if (answer.status !== 201) throw answer.unexpected();
      return { outcome: 'registered', registration: answer.read(readRegisterResponse) };
    });
  }

  /** One long poll. Abort it with `signal`: `failed` with `PLATFORM_ABORTED`. Not retried: the loop paces itself. */
  async poll(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<PollOutcome> {
    const result = await failuresAsOutcome<PollOutcome>(async () => {
      const answer = await this.#post('poll', '/poll', this.#declaration, {
        timeoutMs: PLATFORM_TIMEOUTS.longPollMs,
        signal: options.signal,
      });
      if (answer.status === 401 || answer.status === 403) {
        const { serverMessage, bodyStart } = answer.unexpected();
        const message =
          serverMessage ??
          (bodyStart === undefined || bodyStart === '' ? `status ${answer.status}` : bodyStart);
        return { outcome: 'refused', status: answer.status, message };
      }
      if (answer.status !== 200) throw answer.unexpected();
      const { assignment, action } = answer.read(readPollResponse);
      const drain = action === 'drain';
      return assignment === null
        ? { outcome: 'empty', drain }
        : { outcome: 'offer', offer: assignment, drain };
    });
    return result.outcome === 'failed' ? { ...result, retryAfterMs: result.error.retryAfterMs } : result;
  }

  async claim(
    assignmentId: string,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ClaimOutcome> {
    return failuresAsOutcome(async () => {
      const segment = encodeSegment(assignmentId);
      if (segment === null) {
        const message = 'claim: the assignment id of the offer can not be part of a path';
        throw new PlatformError('PLATFORM_INVALID', message, { endpoint: 'claim' });
      }
      const answer = await this.#post('claim', `/assignments/${segment}/claim`, this.#declaration, {
        retry: 'transient',
        deadlineMs: CLAIM_DEADLINE_MS,
        signal: options.signal,
      });
      if (answer.status === 409) return { outcome: 'lost' };
      if (answer.status !== 200) throw answer.unexpected();
      return { outcome: 'claimed', claim: answer.read(readClaimResponse), serverDateMs: answer.dateMs };
    });
  }

  /** One beat of an assignment lease. Not retried: the next beat is the retry. `timeoutMs` defaults to 30 s. */
  async heartbeat(beat: {
    readonly leaseId: string;
    readonly runId: string;
    readonly phase: HeartbeatPhase;
    readonly timeoutMs?: number | undefined;
    readonly signal?: AbortSignal | undefined;
  }): Promise<HeartbeatOutcome> {
    const body = JSON.stringify({ lease_id: beat.leaseId, run_id: beat.runId, phase: beat.phase });
    return failuresAsOutcome(async () => {
      const answer = await this.#post('heartbeat', '/heartbeat', body, {
        timeoutMs: beat.timeoutMs,
        signal: beat.signal,
      });
      if (answer.status === 409) return { outcome: 'lost' };
      if (answer.status !== 200) throw answer.unexpected();
      const { lease_expires_at: leaseExpiresAtMs, action } = answer.read(readHeartbeatResponse);
      return { outcome: 'renewed', leaseExpiresAtMs, serverDateMs: answer.dateMs, action };
    });
  }

  #post(name: string, path: string, body: string, options: Partial<HttpCall>): Promise<HttpAnswer> {
    return this.#http.request({
      retry: 'none',
      ...options,
      name,
      method: 'POST',
      url: `${this.#base}${path}`,
      headers: JSON_HEADERS,
      body,
      bearer: this.#token,
    });
  }
}
