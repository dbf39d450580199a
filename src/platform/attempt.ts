// One attempt of one call: its clock, and what its failure is called. Guards against calls that never return (every
// attempt has a time for the whole of it, not only between bytes) and against listeners left on long-lived signals.
// Whether there is another attempt is decided in `http.ts`.
import { errors } from 'undici';
import { scrub } from './answer.js';
import { ProxyFailure } from './connections.js';
import { PlatformError } from './platformError.js';
import type { Proxy } from './proxy.js';

/** An attempt's abort signal: falls with the caller's signal or when the time is over, whichever is first. */
export class AttemptClock {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #onAbort = (): void => this.#controller.abort();
  #timedOut = false;

  /** @param timeoutMs time for the whole attempt; 0 = without end */
  constructor(timeoutMs: number, caller: AbortSignal | undefined) {
    this.#caller = caller;
    if (caller?.aborted === true) this.#controller.abort();
    caller?.addEventListener('abort', this.#onAbort, { once: true });
    if (timeoutMs > 0) {
      this.#timer = setTimeout(() => {
        this.#timedOut = true;
        this.#controller.abort();
      }, timeoutMs);
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get timedOut(): boolean {
    return this.#timedOut;
  }

  get abortedByCaller(): boolean {
    return this.#caller?.aborted === true && !this.#timedOut;
  }

  /** Ends the clock. Safe to call twice. */
  end(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener('abort', this.#onAbort);
  }
}

export interface FailedAttempt {
  readonly endpoint: string;
  readonly url: string;
  readonly timeoutMs: number;
  readonly secrets: readonly string[];
  /** `undefined`: the call goes to its address directly. */
  readonly proxy?: Proxy | undefined;
}

/** Names what the HTTP client threw. `PLATFORM_UNREACHABLE` and `PLATFORM_TIMEOUT` are worth another attempt. */
export function attemptError(thrown: unknown, clock: AttemptClock, attempt: FailedAttempt): PlatformError {
  if (thrown instanceof PlatformError) return thrown;
  const { endpoint } = attempt;
  const failure = thrown instanceof ProxyFailure ? thrown : undefined;
  // After a redirect it may be another proxy than at first.
  const proxy = failure?.proxy ?? attempt.proxy;
  const where = `${originOf(attempt.url)}${proxy === undefined ? '' : ` through the proxy ${proxy.name}`}`;
  if (clock.abortedByCaller) return abortedError(endpoint);
  if (clock.timedOut) {
    const message = `${endpoint}: no complete answer from ${where} within ${attempt.timeoutMs} ms`;
    return new PlatformError('PLATFORM_TIMEOUT', message, { endpoint });
  }
  const reason = scrub(reasonOf(thrown), attempt.secrets);
  // The thrown error stays out as a cause: its text may hold what was sent.
  if (isTimeout(failure?.cause ?? thrown)) {
    return new PlatformError('PLATFORM_TIMEOUT', `${endpoint}: ${where} did not answer in time (${reason})`, {
      endpoint,
      // Whatever was to be sent is still here.
      ...(failure === undefined ? {} : { hint: PROXY_HINT }),
    });
  }
  if (thrown instanceof errors.InvalidArgumentError || codeOf(thrown) === 'ERR_INVALID_URL') {
    return new PlatformError('PLATFORM_INVALID', `${endpoint}: the call can't be made (${reason})`, {
      endpoint,
    });
  }
  return new PlatformError('PLATFORM_UNREACHABLE', `${endpoint}: no answer from ${where} (${reason})`, {
    endpoint,
    hint: hintOf(proxy, failure?.status),
  });
}

const PROXY_HINT = 'Check the proxy, or name the address in NO_PROXY so that it is reached directly.';

function hintOf(proxy: Proxy | undefined, status: number | undefined): string {
  if (proxy === undefined)
    return 'Check the address, the network and the certificates between this machine and the control plane.';
  if (status !== 407) return PROXY_HINT;
  return proxy.authorization === undefined
    ? 'The proxy wants credentials: give them as http://USER:PASSWORD@HOST:PORT.'
    : 'The proxy wants credentials, and does not take those of its address.';
}

/** The caller's signal ended the call. */
export function abortedError(endpoint: string): PlatformError {
  return new PlatformError('PLATFORM_ABORTED', `${endpoint}: the call was aborted`, { endpoint });
}

function isTimeout(thrown: unknown): boolean {
  return (
    thrown instanceof errors.ConnectTimeoutError ||
    thrown instanceof errors.HeadersTimeoutError ||
    thrown instanceof errors.BodyTimeoutError ||
    (thrown instanceof Error && thrown.name === 'TimeoutError')
  );
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'an address that is not a URL';
}

/** A connection refused on several addresses is an AggregateError with an empty message. */
function reasonOf(thrown: unknown): string {
  if (thrown instanceof AggregateError && thrown.errors.length > 0) return reasonOf(thrown.errors[0]);
  if (!(thrown instanceof Error)) return 'unknown reason';
  if (thrown instanceof ProxyFailure && thrown.cause !== undefined)
    return `${thrown.message}: ${reasonOf(thrown.cause)}`;
  return thrown.message !== '' ? thrown.message : (codeOf(thrown) ?? thrown.name);
}

function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string'
    ? thrown.code
    : undefined;
}
