// Canonical encoding: the values of a program as JSON (protocol/sdk.md 6.3). It guards against the stack overflow that
// a cycle would otherwise be, and against a value that means one thing to the program and another on the wire.

import { HostError } from './hostError.js';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Deeper values are refused like cycles: no reader on the way could take them either. */
const MAX_DEPTH = 1_000;

/**
 * @throws HostError `VALIDATION` for a value that contains itself or is nested too deeply.
 */
export function encodeValue(value: unknown): Json {
  return encode(value, new Set(), 0) ?? null;
}

/** `undefined` = leave the member out. */
function encode(value: unknown, ancestors: Set<object>, depth: number): Json | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : null;
    case 'bigint':
      return value.toString();
    case 'object':
      return value === null ? null : encodeObject(value, ancestors, depth);
    default:
      return undefined;
  }
}

function encodeObject(value: object, ancestors: Set<object>, depth: number): Json | undefined {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array)
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  if (ancestors.has(value) || depth >= MAX_DEPTH) {
    const what = depth >= MAX_DEPTH ? `is nested deeper than ${MAX_DEPTH} levels` : 'contains itself';
    throw new HostError('VALIDATION', `The value can't be encoded as JSON: it ${what}.`, {
      hint: 'Return plain data: objects, arrays, strings, numbers, dates.',
    });
  }
  ancestors.add(value);
  try {
    return encodeMembers(value, ancestors, depth + 1);
  } finally {
    ancestors.delete(value);
  }
}

function encodeMembers(value: object, ancestors: Set<object>, depth: number): Json | undefined {
  if (value instanceof Set || Array.isArray(value)) {
    return Array.from(value, (item: unknown) => encode(item, ancestors, depth) ?? null);
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const replacement: unknown = Reflect.apply(value.toJSON, value, ['']);
    return encode(replacement, ancestors, depth);
  }
  // Without a prototype a member called __proto__ is a member like any other.
  const encoded = Object.create(null) as Record<string, Json>;
  for (const [key, member] of Object.entries(value)) {
    const result = encode(member, ancestors, depth);
    if (result !== undefined) encoded[key] = result;
  }
  return encoded;
}
