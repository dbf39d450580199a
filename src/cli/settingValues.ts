// The types of settings: from the text of a flag or a variable to a value, or words on what is allowed. Guards against
// values that pass here and fail later in words that don't name the setting: what another part would refuse is asked of
// that part.

import { z } from 'zod';
import { OperatorError } from '../contract/operatorError.js';
import { FleetKeys } from '../queue/keys.js';
import { redisAddress } from '../queue/redisAddress.js';
import { LONGEST_TIMER_MS } from '../waiting/waiting.js';
import { parseDurationText } from './durations.js';
import { parseMounts, type Mount } from './mounts.js';
import { parseSizeText, sizeText } from './sizes.js';

const single = z.string('must be a single value');

export const text = single.min(1, 'must not be empty');

export const flag = z.union(
  [
    z.boolean(),
    z.enum(['1', 'true', 'yes', '0', 'false', 'no']).transform((word) => ['1', 'true', 'yes'].includes(word)),
  ],
  'must be true or false',
);

/** One text with commas, or a list whose parts are whole. */
export const list = z
  .union([z.string(), z.array(z.string())], 'must be a list')
  .transform((value) =>
    (typeof value === 'string' ? value.split(',') : value)
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  );

export const count = (least: number, most: number): z.ZodType<number, string> =>
  single
    .regex(/^\d+$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be a whole number from ${least} to ${most}`);

export const decimal = (least: number, most: number): z.ZodType<number, string> =>
  single
    .regex(/^\d+(?:\.\d+)?$/, `must be a number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be a number from ${least} to ${most}`);

/** Bytes are exact up to here. */
const MOST_BYTES = 2 ** 53 - 1;

export const sizeFrom = (leastBytes: number): z.ZodType<number, string> =>
  text.transform((value, context) => {
    const bytes = parseSizeText(value);
    const why =
      bytes === null
        ? 'must be a size such as 512m, 2g or a number of bytes'
        : bytes < leastBytes
          ? `must be at least ${sizeText(leastBytes)}`
          : bytes > MOST_BYTES
            ? 'is more than any machine has'
            : null;
    if (bytes !== null && why === null) return bytes;
    context.addIssue({ code: 'custom', message: why ?? 'is no size' });
    return z.NEVER;
  });

export const mounts = list.transform((parts, context): readonly Mount[] => {
  const parsed = parseMounts(parts);
  if (typeof parsed !== 'string') return parsed;
  context.addIssue({ code: 'custom', message: parsed });
  return z.NEVER;
});

const LARGEST_ID = 2 ** 32 - 2;

export interface UserAndGroup {
  readonly uid: number;
  readonly gid: number;
}

export const userAndGroup = text.transform((value, context): UserAndGroup => {
  const [, uid, gid = uid] = /^(\d{1,10})(?::(\d{1,10}))?$/.exec(value) ?? [];
  if (uid !== undefined && Number(uid) <= LARGEST_ID && Number(gid) <= LARGEST_ID)
    return { uid: Number(uid), gid: Number(gid) };
  context.addIssue({
    code: 'custom',
    message: `must be UID or UID:GID, numbers from 0 to ${LARGEST_ID}`,
  });
  return z.NEVER;
});

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
): z.ZodType<readonly Role[], string | string[]> =>
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
