// The types of settings: from the text of a flag or a variable to a value, or words on what is allowed. Guards against
// values that pass here and fail later in words that don't name the setting: what another part would refuse is asked of
// that part.

import { z } from 'zod';
import { OperatorError } from '../contract/operatorError.js';
import { FleetKeys } from '../queue/keys.js';
import { redisAddress } from '../queue/redisAddress.js';
import { LONGEST_TIMER_MS } from '../waiting/waiting.js';
import { parseDurationText } from './durations.js';

export const text = z.string().min(1, 'must not be empty');

export const flag = z.union(
  [
    z.boolean(),
    z.enum(['1', 'true', 'yes', '0', 'false', 'no']).transform((word) => ['1', 'true', 'yes'].includes(word)),
  ],
  'must be true or false',
);

export const list = text.transform((value) =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

export const count = (least: number, most: number): z.ZodType<number, string> =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be a whole number from ${least} to ${most}`);

export const httpUrl = text
  .refine(
    (value) => /^https?:\/\//.test(value) && URL.canParse(value),
    'must be an http:// or https:// address',
  )
  .refine((value) => {
    const url = URL.canParse(value) ? new URL(value) : null;
    return url === null || url.username + url.password === '';
  }, 'must not hold a user name or a password')
  .refine((value) => !/[?#]/.test(value), 'must not hold a query or a fragment');

/** The address itself is checked where it is used, so that there is one notion of it. */
export const redisUrl = text.superRefine((value, context) => {
  try {
    redisAddress({ url: value });
  } catch (error) {
    const why = error instanceof OperatorError ? ` (${error.message.replace(/\.$/, '')})` : '';
    context.addIssue({
      code: 'custom',
      message: `must be redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH${why}`,
    });
  }
});

export const fleetName = text.superRefine((value, context) => {
  try {
    new FleetKeys(value);
  } catch {
    context.addIssue({
      code: 'custom',
      message: 'must be 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or a digit',
    });
  }
});

export const durationFrom = (leastMs: number): z.ZodType<number, string> =>
  text.transform((value, context) => {
    const ms = parseDurationText(value);
    const why =
      ms === null
        ? 'must be a time such as 22s, 5m or 500ms'
        : ms < leastMs
          ? `must be at least ${leastMs} ms`
          : ms > LONGEST_TIMER_MS
            ? 'must be at most 596h'
            : null;
    if (ms !== null && why === null) return ms;
    context.addIssue({ code: 'custom', message: why ?? 'is no time' });
    return z.NEVER;
  });

export const duration = durationFrom(0);

export const rolesOf = <const Role extends string>(
  names: readonly Role[],
): z.ZodType<readonly Role[], string> =>
  list.pipe(z.array(z.enum(names, `must be some of ${names.join(', ')}`)).min(1, 'must name a role'));

export const json = text.transform((value, context): unknown => {
  try {
    return JSON.parse(value) as unknown;
  } catch (error) {
    context.addIssue({
      code: 'custom',
      message: `must be JSON (${error instanceof Error ? error.message : 'unreadable'})`,
    });
    return z.NEVER;
  }
});
