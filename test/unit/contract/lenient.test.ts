import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { parseLenient, parseWire } from '../../../src/contract/lenient.js';

const leaf = z.strictObject({ n: z.number() });
const schema = z.strictObject({
  name: z.string(),
  leaves: z.array(leaf).optional(),
  either: z.union([z.literal('all'), leaf, z.strictObject({ s: z.string(), inner: leaf })]).optional(),
});

describe('a lenient parse', () => {
  it('takes unknown keys out at any depth, through arrays and unions', () => {
    const value = {
      name: 'a',
      x: 1,
      leaves: [{ n: 1 }, { n: 2, y: {} }],
      either: { s: 's', z: 1, inner: { n: 3, w: 1 } },
    };
    const before = structuredClone(value);
    expect(parseLenient(schema, value)).toEqual({
      name: 'a',
      leaves: [{ n: 1 }, { n: 2 }],
      either: { s: 's', inner: { n: 3 } },
    });
    expect(value).toEqual(before);
  });

  it('refuses when anything else is wrong too', () => {
    expect(parseLenient(schema, { name: 7, x: 1 })).toBeNull();
    expect(parseLenient(schema, { x: 1 })).toBeNull();
    expect(parseLenient(schema, { name: 'a', either: { n: 'one', y: 1 } })).toBeNull();
    expect(parseLenient(schema, null)).toBeNull();
  });

  it('takes out keys that every object has', () => {
    const value: unknown = JSON.parse('{"name":"a","__proto__":{"x":1},"constructor":1,"toString":2}');
    const parsed = parseLenient(schema, value);
    expect(parsed).toEqual({ name: 'a' });
    expect(Object.keys(parsed ?? {})).toEqual(['name']);
  });

  it('copes with thousands of unknown keys, and of objects that have one', () => {
    const keys = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, n]));
    expect(parseLenient(schema, { name: 'a', ...keys })).toEqual({ name: 'a' });
    const leaves = Array.from({ length: 5_000 }, (_, n) => ({ n, extra: n }));
    expect(parseLenient(schema, { name: 'a', leaves })?.leaves?.at(-1)).toEqual({ n: 4_999 });
  });
});

describe('a body that must be usable', () => {
  it('is refused for what is wrong with it, not for the keys that are too many', () => {
    expect(() => parseWire('test answer', schema, { x: 1, name: 7 })).toThrow(
      'test answer: name is not valid: ',
    );
    expect(() => parseWire('test answer', schema, { name: 'a', leaves: [{ n: 1 }, {}] })).toThrow(
      'test answer: leaves.1.n is missing',
    );
    expect(() => parseWire('test answer', schema, 'text')).toThrow('test answer: the body is not valid: ');
  });
});
