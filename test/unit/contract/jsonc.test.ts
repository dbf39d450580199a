import { describe, expect, it } from 'vitest';
import { JsoncError, parseJsonc } from '../../../src/contract/jsonc.js';
import { named, seededRandom, vectorCases, type VectorCase } from './vectors.js';

interface DescriptorCase extends VectorCase {
  readonly text: string;
  readonly valid: boolean;
}

/** Refused for what they say and not for how they are written. */
const REFUSED_LATER = new Set(
  [
    'input_schema_refused',
    'output_schema_null_refused',
    'array',
    'null',
    'concurrency_key_bad',
    'workspace_key_bad',
    'latest_wins_key_bad',
  ].map((name) => `descriptor/${name}`),
);
/** Ours takes a byte order mark, which editors write unasked. */
const TAKEN_BY_OURS = new Set(['descriptor/bom']);

describe('a descriptor of the vectors', () => {
  const cases = vectorCases<DescriptorCase>('manifest', 214).filter(({ type }) => type === 'descriptor');
  it.each(named(cases))('%s', (name, { text, valid }) => {
    if (valid || REFUSED_LATER.has(name) || TAKEN_BY_OURS.has(name))
      expect(() => parseJsonc(text)).not.toThrow();
    else expect(() => parseJsonc(text)).toThrow(JsoncError);
  });
});

describe('JSON with comments', () => {
  it('gives what JSON gives, for any JSON', () => {
    const random = seededRandom(5);
    const any = (depth: number): unknown => {
      const kind = Math.floor(random() * (depth > 4 ? 6 : 8));
      if (kind === 6) return Array.from({ length: Math.floor(random() * 4) }, () => any(depth + 1));
      if (kind === 7)
        return Object.fromEntries(
          ['', 'a', '"\\/', 'ø\n'].map((key) => [key + String(Math.floor(random() * 3)), any(depth + 1)]),
        );
      return [null, true, -1.5e-7, 12_345, 'text // no /* comment */ ,}', '\u2028\ud83c\udf3f\t'][kind];
    };
    for (let round = 0; round < 300; round += 1) {
      const value = any(0);
      expect(parseJsonc(JSON.stringify(value))).toEqual(value);
      expect(parseJsonc(JSON.stringify(value, null, 2))).toEqual(value);
    }
  });

  it('takes comments and one trailing comma wherever they may stand', () => {
    expect(
      parseJsonc('\uFEFF// head\n{ /* a */ "a" /* b */ : /* c */ [1, /* d */ 2, ], // e\n}\n// tail'),
    ).toEqual({ a: [1, 2] });
    expect(parseJsonc('/***/ {"a": 1} /* * / ** */')).toEqual({ a: 1 });
  });

  it('sets a key named __proto__ as any other, and lets the last of two keys win', () => {
    const value = parseJsonc('{"__proto__": {"polluted": true}, "a": 1, "a": 2}') as Record<string, unknown>;
    expect(Object.keys(value)).toEqual(['__proto__', 'a']);
    expect(value['a']).toBe(2);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it.each([
    ['{\n  "a": 1,,\n}', 2, 10, 'expected a key in double quotes or }, found ","'],
    ['{"a" 1}', 1, 6, 'expected : after the key, found "1"'],
    ['{"a": 1 "b": 2}', 1, 9, 'expected , or }, found "\\""'],
    ['[1, 2', 1, 6, 'expected , or ], found the end of the file'],
    ['{"a": tru}', 1, 7, '"tru" is not a JSON value'],
    ['{"a": 01}', 1, 7, '"01" is not a JSON value'],
    ['{"a": NaN}', 1, 7, '"NaN" is not a JSON value'],
    ['{"a": \'b\'}', 1, 7, 'expected a value, found "\'"'],
    ['{"a": "b\n"}', 1, 7, 'a string is not closed on its line'],
    ['{"a": "\\x"}', 1, 7, 'an escape that JSON does not know'],
    ['{"a": "\t"}', 1, 7, 'a character or an escape'],
    ['\uFEFF{}\r\n\r\n/* open', 3, 1, 'a comment is not closed'],
    ['{} {}', 1, 4, 'expected the end of the file, found "{"'],
    ['', 1, 1, 'expected a value, found the end of the file'],
    ['// nothing', 1, 11, 'expected a value, found the end of the file'],
    ['[1,\r"x', 2, 1, 'a string is not closed on its line'],
  ])('says where it is wrong: %j', (text, line, column, problem) => {
    const parse = (): unknown => parseJsonc(text, 'workflow.jsonc');
    expect(parse).toThrow(expect.objectContaining({ code: 'JSONC_INVALID', line, column }));
    expect(parse).toThrow(`workflow.jsonc:${line}:${column}: `);
    expect(parse).toThrow(problem);
  });

  it('refuses nesting that no person wrote, and long runs of blanks and comments cost nothing', () => {
    expect(() => parseJsonc('['.repeat(100_000))).toThrow('nested deeper than 200 levels');
    expect(parseJsonc(`${' \n/**/'.repeat(50_000)}1`)).toBe(1);
    expect(() => parseJsonc(`{"a": "${'x'.repeat(1_000_000)}`)).toThrow(JsoncError);
    expect(parseJsonc(JSON.stringify('\\'.repeat(500_000)))).toBe('\\'.repeat(500_000));
  });
});
