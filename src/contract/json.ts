// JSON values as they come from the wire, before anything is known about them. Guards against two classic slips:
// taking null or an array for an object, and writing a key named `__proto__` into a prototype. Imports nothing.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export type UnknownRecord = Readonly<Record<string, unknown>>;

/** An object with named members: not null, not an array. */
export function isRecord(value: unknown): value is UnknownRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object's own member, never an inherited one: a wire field may be called `constructor`. */
export function ownMember(record: UnknownRecord, key: string): unknown {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

/** Sets an own member whatever its name is, `__proto__` included (as `JSON.parse` does). */
export function setMember(record: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(record, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    record[key] = value;
  }
}
