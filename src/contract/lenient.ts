// One strict schema for what we send, the same schema made tolerant for what we receive: unknown keys are taken out of
// a copy and the rest is checked as before. Guards against two definitions that drift apart, and against the strict
// peer's fault, where one added field strands a run (R10). Unknown values are still refused: skipping is the reader's.

import type { z } from 'zod';
import { WireError } from './wireError.js';

/**
 * The value of the schema, with keys that it doesn't know removed at any depth; null when something else is wrong too.
 * The input is never changed.
 */
export function parseLenient<S extends z.ZodType>(schema: S, value: unknown): z.output<S> | null {
  const read = readLenient(schema, value);
  return read.success ? read.data : null;
}

/**
 * As `parseLenient`, for a body that must be usable.
 *
 * @throws WireError that names the endpoint and the first field that is wrong
 */
export function parseWire<S extends z.ZodType>(endpoint: string, schema: S, value: unknown): z.output<S> {
  const read = readLenient(schema, value);
  if (read.success) return read.data;
  const issues = read.error.issues;
  const issue = issues.find((one) => one.code !== 'unrecognized_keys') ?? issues[0];
  throw new WireError({
    endpoint,
    field: issue?.path.map(String).join('.') ?? '',
    problem: problemOf(issue),
  });
}

type Issue = z.core.$ZodIssue;

function readLenient<S extends z.ZodType>(schema: S, value: unknown): z.ZodSafeParseResult<z.output<S>> {
  const strict = schema.safeParse(value);
  if (strict.success) return strict;
  const surplus = surplusOf(strict.error.issues, []);
  return surplus === null ? strict : schema.safeParse(without(value, surplus));
}

/** Unknown keys of one object. */
interface Surplus {
  readonly at: readonly PropertyKey[];
  readonly keys: readonly string[];
}

/** Where unknown keys are; null when anything else is wrong. */
function surplusOf(issues: readonly Issue[], base: readonly PropertyKey[]): readonly Surplus[] | null {
  const found: Surplus[] = [];
  for (const issue of issues) {
    const at = [...base, ...issue.path];
    if (issue.code === 'unrecognized_keys') {
      found.push({ at, keys: issue.keys });
    } else if (issue.code === 'invalid_union') {
      // The branch for which only keys are too many is the one that was meant.
      const branch = issue.errors.map((errors) => surplusOf(errors, at)).find((surplus) => surplus !== null);
      if (branch === undefined) return null;
      found.push(...branch);
    } else {
      return null;
    }
  }
  return found;
}

/** A copy without those keys. Only what lies on the way is copied: the rest may be deep beyond any recursion. */
function without(value: unknown, surplus: readonly Surplus[]): unknown {
  const copies = new Set<object>();
  const copyOf = (original: unknown): unknown => {
    if (typeof original !== 'object' || original === null || copies.has(original)) return original;
    const copy: object = Array.isArray(original) ? [...(original as readonly unknown[])] : { ...original };
    copies.add(copy);
    return copy;
  };
  const root = copyOf(value);
  for (const { at, keys } of surplus) {
    let holder = root;
    for (const step of at) {
      if (typeof holder !== 'object' || holder === null) break;
      const next = copyOf(Reflect.get(holder, step));
      Reflect.set(holder, step, next);
      holder = next;
    }
    if (typeof holder === 'object' && holder !== null)
      for (const key of keys) Reflect.deleteProperty(holder, key);
  }
  return root;
}

function problemOf(issue: Issue | undefined): string {
  if (issue === undefined) return 'is not valid';
  // A schema's message says what was expected and of which type the value is, never the value.
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined')) return 'is missing';
  return `is not valid: ${issue.message}`;
}
