// The shared test vectors, as cases for data-driven tests. A file that shrank or lost a type of case must not pass in
// silence, so each test says how many cases it expects at least.

import { readFileSync } from 'node:fs';

export interface VectorCase {
  readonly name: string;
  readonly [member: string]: unknown;
}

/** All cases of `test/vectors/<file>.json`, checked for their number. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller knows the shape of its file
export function vectorCases<T extends VectorCase>(file: string, atLeast: number): readonly T[] {
  const path = new URL(`../../vectors/${file}.json`, import.meta.url);
  const { cases } = JSON.parse(readFileSync(path, 'utf8')) as { readonly cases: readonly T[] };
  if (cases.length < atLeast) throw new Error(`${file}.json has ${cases.length} cases, expected ${atLeast}`);
  return cases;
}

/** Cases in the form that `it.each('%s')` titles with their whole name. */
export function named<T extends VectorCase>(cases: readonly T[]): readonly (readonly [string, T])[] {
  return cases.map((one) => [one.name, one]);
}

/** What JSON makes of a value: absent members and undefined ones are the same. */
export function asJson(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

/** Numbers in [0, 1) that are the same in every run (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
