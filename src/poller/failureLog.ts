// What is said of failing polls and claims. Guards against a log that an outage fills with stacks: a failure is said once
// with its reason and where it happened, and again only when it becomes another one or is over.
import type { Logger } from 'pino';
import type { PlatformError } from '../platform/platformError.js';

export class FailureLog {
  readonly #call: string;
  readonly #url: string;
  readonly #log: Logger;
  /** The failure that was said last; null while all is well. */
  #said: string | null = null;
  #failures = 0;

  /** @param call what fails, as people say it: `poll` */
  constructor(call: string, url: string, log: Logger) {
    this.#call = call;
    this.#url = url;
    this.#log = log;
  }

  failed(error: PlatformError, details: Readonly<Record<string, unknown>> = {}): void {
    this.#failures += 1;
    const { code, status, message } = error;
    this.#log.debug({ err: error, failures: this.#failures, ...details }, `${this.#call} failed`);
    const kind = `${code} ${status ?? ''}`;
    if (kind === this.#said) return;
    this.#said = kind;
    const hint = looksElsewhere(error) ? 'is --url right?' : undefined;
    this.#log.warn(
      { reason: message, code, status, url: this.#url, hint, ...details },
      `${this.#call} failed, trying again`,
    );
  }

  succeeded(): void {
    if (this.#said !== null)
      this.#log.info({ failures: this.#failures, url: this.#url }, `${this.#call} works again`);
    this.#said = null;
    this.#failures = 0;
  }
}

/** Answers as a control plane doesn't give them: another server is there, or another path. */
function looksElsewhere({ code, status = 0 }: PlatformError): boolean {
  return code === 'PLATFORM_INVALID' || status === 404 || (status >= 300 && status < 400);
}
