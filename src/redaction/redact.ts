// Secrets replaced in texts and in JSON values, before anything leaves a run (protocol/program.md 10). Where secrets
// overlap, everything that any of them covers goes: replacing the longest first would leave the rest of the other
// standing. Keys of objects are kept. Texts that arrive in pieces are the business of `holdBack.ts`.

import type { SecretSet } from './secretSet.js';

export const REDACTED = '[REDACTED]';

/** Values nested deeper than this are replaced as a whole: nobody can vouch for what is in them. */
export const MAX_REDACT_DEPTH = 100;

/** The text with every secret replaced; the same string when there is none. */
export function redact(text: string, set: SecretSet): string {
  return cover(text, set, 0, text.length).text;
}

/**
 * A JSON value with every string in it redacted; parts that hold no secret are returned as they are, and the value
 * itself is never changed. For values that came from JSON: no cycles, no classes.
 */
export function redactDeep(value: unknown, set: SecretSet): unknown {
  return set.size === 0 ? value : redactAt(value, set, 0);
}

export interface Covered {
  /** What may be shown: the text from `covered` up to `until`, secrets replaced. */
  readonly text: string;
  /** Where the last secret that begins before `until` ends; it may lie behind it. */
  readonly end: number;
}

/**
 * Replaces the secrets that begin before `until`, in a text whose first `covered` characters have been replaced already:
 * what overlaps with those is part of the same replacement.
 */
export function cover(text: string, set: SecretSet, covered: number, until: number): Covered {
  let shown = '';
  let end = covered;
  for (const match of set.matches(text)) {
    if (match.start >= until && match.start >= end) break;
    if (match.start >= end) shown += text.slice(end, match.start) + REDACTED;
    end = Math.max(end, match.end);
  }
  if (end === 0 && until === text.length) return { text, end };
  return { text: end < until ? shown + text.slice(end, until) : shown, end };
}

function redactAt(value: unknown, set: SecretSet, depth: number): unknown {
  if (typeof value === 'string') return redact(value, set);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_REDACT_DEPTH) return REDACTED;
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value;
    const redacted = items.map((item) => redactAt(item, set, depth + 1));
    return redacted.every((item, index) => item === items[index]) ? value : redacted;
  }
  return redactMembers(value, set, depth);
}

function redactMembers(value: object, set: SecretSet, depth: number): object {
  const members: readonly (readonly [string, unknown])[] = Object.entries(value);
  const redacted = members.map(([, member]) => redactAt(member, set, depth + 1));
  if (members.every(([, member], index) => member === redacted[index])) return value;
  // fromEntries defines members, so that one named `__proto__` stays a member.
  return Object.fromEntries(members.map(([key], index) => [key, redacted[index]]));
}
