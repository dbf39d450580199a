// Reads fields of a JSON object tolerantly: what is needed is checked and named when it is wrong, the rest is ignored.
// For wires where a full schema would refuse too much, and for code that must start without a validation library.
// It guards against a missing field surfacing later as a crash far from its cause.

import { isRecord, ownMember, type UnknownRecord } from './json.js';
import { WireError } from './wireError.js';

/** The fields of one object. Every reader throws `WireError` with the endpoint and the dotted path of the field. */
export class Fields {
  readonly raw: UnknownRecord;
  readonly #endpoint: string;
  readonly #path: string;

  constructor(endpoint: string, value: unknown, path = '') {
    if (!isRecord(value)) throw new WireError({ endpoint, field: path, problem: 'must be an object' });
    this.raw = value;
    this.#endpoint = endpoint;
    this.#path = path;
  }

  /** The field's value, undefined when it is absent. */
  get(name: string): unknown {
    return ownMember(this.raw, name);
  }

  /** An error about one field of this object. */
  wrong(name: string, problem: string): WireError {
    return new WireError({ endpoint: this.#endpoint, field: this.#pathOf(name), problem });
  }

  object(name: string): Fields {
    const value = this.get(name);
    if (value === undefined) throw this.wrong(name, 'is missing');
    return new Fields(this.#endpoint, value, this.#pathOf(name));
  }

  /** null when the field is absent or null. */
  optionalObject(name: string): Fields | null {
    const value = this.get(name);
    return value === undefined || value === null
      ? null
      : new Fields(this.#endpoint, value, this.#pathOf(name));
  }

  /** A string, by default not empty. */
  string(name: string, { min = 1 }: { readonly min?: number } = {}): string {
    const value = this.get(name);
    if (typeof value !== 'string')
      throw this.wrong(name, value === undefined ? 'is missing' : 'must be a string');
    if (value.length < min) throw this.wrong(name, 'must not be empty');
    return value;
  }

  integer(name: string, { min = 0 }: { readonly min?: number } = {}): number {
    const value = this.get(name);
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min)
      throw this.wrong(name, value === undefined ? 'is missing' : `must be an integer of at least ${min}`);
    return value;
  }

  boolean(name: string): boolean {
    const value = this.get(name);
    if (typeof value !== 'boolean')
      throw this.wrong(name, value === undefined ? 'is missing' : 'must be true or false');
    return value;
  }

  /** The string, or undefined when the field is absent, empty or of another type. */
  stringOr<T>(name: string, otherwise: T): string | T {
    const value = this.get(name);
    return typeof value === 'string' && value !== '' ? value : otherwise;
  }

  integerOr<T>(name: string, otherwise: T, { min = 0 }: { readonly min?: number } = {}): number | T {
    const value = this.get(name);
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= min ? value : otherwise;
  }

  #pathOf(name: string): string {
    return this.#path === '' ? name : `${this.#path}.${name}`;
  }
}

/** Every member a string: query, headers and environment maps. */
export function isStringMap(value: unknown): value is Readonly<Record<string, string>> {
  return isRecord(value) && Object.values(value).every((member) => typeof member === 'string');
}
