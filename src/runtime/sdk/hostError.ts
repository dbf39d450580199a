// What the host answered instead of a result, as the program sees it (protocol/sdk.md 5.5). Which of them end the
// whole run is a rule shared with the host and lives in the contract.

/** Thrown by every call to the host that fails. */
export class HostError extends Error {
  override readonly name: string = 'HostError';
  /** SCREAMING_SNAKE_CASE, e.g. `NOT_FOUND`, `CANCELLED`, `UNSUPPORTED`. */
  readonly code: string;
  /** `{ hint?, detail? }` mostly; `{ reason }` for `CANCELLED`. */
  readonly data: unknown;

  constructor(code: string, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}
