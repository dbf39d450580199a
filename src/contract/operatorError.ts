// The error for a person: whoever runs the fleet reads its message and its hint, and never a stack trace.
// What a program must tell apart is a member of a union instead; this class is for what ends a command.

/**
 * A failure that an operator can act on.
 *
 * `message` says what is wrong and where; `hint` says what to do. Neither ever carries a secret.
 */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError';
  /** Stable, SCREAMING_SNAKE_CASE; documented where it is thrown. */
  readonly code: string;
  readonly hint: string | undefined;
  /** A wrong or missing flag or setting: the command was called in a way that can't work, and nothing was begun. */
  readonly usage: boolean;

  constructor(
    code: string,
    message: string,
    options: { readonly hint?: string; readonly cause?: unknown; readonly usage?: boolean } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.usage = options.usage ?? false;
  }
}
