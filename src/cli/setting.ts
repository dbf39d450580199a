// What a setting is. Apart from the settings themselves, so that a family of them can have a file of its own.

import type { z } from 'zod';

/** As a person gives it: a text, a switch, or a list where a flag is repeated or the file has one. */
export type GivenValue = string | boolean | readonly string[];

/** What one setting is. `placeholder` absent: a switch. */
export interface Setting<T> {
  readonly placeholder?: string;
  readonly help: string;
  readonly schema: z.ZodType<T, GivenValue>;
  readonly fallback?: T;
  /** Words for the default where the value alone says little. */
  readonly fallbackHelp?: string;
  /** Never shown, and may come from a file named by the variable with `_FILE`. Not a flag: argv is public. */
  readonly secret?: boolean;
  /** May hold a password or a token: not repeated in an error. */
  readonly veiled?: boolean;
  /** The flag may be given several times. */
  readonly several?: boolean;
  /** Said anew with each command: it has no place in a file that serves all of them. */
  readonly oneShot?: boolean;
  /** The value as a person writes it, where it is neither text nor number: what the schema reads back. */
  written?(value: T): string | readonly string[];
}

export function optional<T>(definition: Setting<T>): Setting<T> {
  return definition;
}

export function defaulted<T>(
  definition: Setting<T> & { readonly fallback: T },
): Setting<T> & { readonly fallback: T } {
  return definition;
}
