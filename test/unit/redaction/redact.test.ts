import { describe, expect, it } from 'vitest';
import { MAX_REDACT_DEPTH, redact, redactDeep, REDACTED } from '../../../src/redaction/redact.js';
import { SecretSet } from '../../../src/redaction/secretSet.js';

function setOf(...secrets: readonly string[]): SecretSet {
  const set = new SecretSet();
  for (const secret of secrets) set.add(secret);
  return set;
}

describe('a set of secrets', () => {
  it('leaves out what is shorter than four characters', () => {
    const set = setOf('abc', '', 'abcd');
    expect(set.size).toBe(1);
    expect(redact('abc abcd', set)).toBe(`abc ${REDACTED}`);
  });

  it('finds values that were added after a search', () => {
    const set = setOf('first-secret');
    expect(redact('second-secret', set)).toBe('second-secret');
    set.add('second-secret');
    expect(redact('second-secret', set)).toBe(REDACTED);
  });
});

describe('a text', () => {
  it('comes back as it is when it holds no secret, or when there is none', () => {
    expect(redact('nothing to hide', new SecretSet())).toBe('nothing to hide');
    expect(redact('nothing to hide', setOf('hunter22'))).toBe('nothing to hide');
    expect(redact('', setOf('hunter22'))).toBe('');
  });

  it('loses every occurrence, and nothing around it', () => {
    expect(redact('a hunter22, b hunter22hunter22.', setOf('hunter22'))).toBe(
      'a [REDACTED], b [REDACTED][REDACTED].',
    );
  });

  it('loses the longer of two secrets that begin alike', () => {
    const set = setOf('token', 'token-of-the-run');
    expect(redact('token-of-the-run token token-of', set)).toBe('[REDACTED] [REDACTED] [REDACTED]-of');
  });

  it('loses all of what overlapping secrets cover, so that no end of one is left', () => {
    expect(redact('xabcdefx', setOf('abcd', 'cdef'))).toBe('x[REDACTED]x');
    expect(redact('xabcdefx', setOf('abcd', 'bcdef'))).toBe('x[REDACTED]x');
    expect(redact('aaaaaa', setOf('aaaa'))).toBe('[REDACTED]');
    expect(redact('xaxaxa', setOf('xaxa'))).toBe('[REDACTED]');
  });

  it('may hold secrets made of anything', () => {
    const odd = [
      'a.*b',
      '^$[]()',
      '\\d+\\',
      'line\nbreak',
      '🌿🌿',
      'a|b|c',
      'x{2}/-',
      '__proto__',
      '\u2028\u2029\0\u0001',
    ];
    const set = setOf(...odd);
    for (const secret of odd) expect(redact(`<${secret}>`, set)).toBe('<[REDACTED]>');
    expect(redact('aXXb dddd xx', set)).toBe('aXXb dddd xx');
  });

  it('loses a secret also without the line break it was stored with, and as JSON prints it', () => {
    expect(redact('key=hunter22;', setOf('hunter22\n'))).toBe('key=[REDACTED];');
    const pem = '-----BEGIN-----\n"q"\\\n';
    expect(redact(JSON.stringify({ pem }), setOf(pem))).toBe('{"pem":"[REDACTED]"}');
  });

  it('is not searched again for secrets in the replacement', () => {
    expect(redact('REDACTED hunter22', setOf('REDACTED', 'hunter22'))).toBe('[REDACTED] [REDACTED]');
  });
});

describe('a value', () => {
  const set = setOf('hunter22');

  it('loses secrets in every string, and keeps its keys', () => {
    const value = { hunter22: ['a hunter22', { deep: 'hunter22', n: 1, no: null, yes: true }] };
    expect(redactDeep(value, set)).toEqual({
      hunter22: ['a [REDACTED]', { deep: '[REDACTED]', n: 1, no: null, yes: true }],
    });
    expect(value.hunter22[0]).toBe('a hunter22');
  });

  it('comes back as the same object where there was nothing to take out', () => {
    const clean = { a: [{ b: 'c' }], d: NaN };
    expect(redactDeep({ d: 'e' }, new SecretSet())).toEqual({ d: 'e' });
    const value = { clean, dirty: 'hunter22' };
    const redacted = redactDeep(value, set) as typeof value;
    expect(redactDeep(clean.a, set)).toBe(clean.a);
    expect(redacted.clean.a).toBe(clean.a);
    expect(redacted.dirty).toBe(REDACTED);
  });

  it('keeps a member named __proto__ a member', () => {
    const value: unknown = JSON.parse('{"__proto__":{"polluted":"hunter22"},"constructor":"hunter22"}');
    const redacted = redactDeep(value, set) as object;
    expect(JSON.stringify(redacted)).toBe(
      '{"__proto__":{"polluted":"[REDACTED]"},"constructor":"[REDACTED]"}',
    );
    expect(Object.getPrototypeOf(redacted)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('is replaced as a whole below the depth that is looked into', () => {
    const nested = (depth: number): unknown => (depth === 0 ? 'hunter22' : [nested(depth - 1)]);
    expect(JSON.stringify(redactDeep(nested(MAX_REDACT_DEPTH), set))).not.toContain('hunter22');
    expect(JSON.stringify(redactDeep(nested(MAX_REDACT_DEPTH), set))).toContain(
      `${'['.repeat(MAX_REDACT_DEPTH)}"[REDACTED]"`,
    );
    expect(JSON.stringify(redactDeep(nested(5_000), set))).toBe(
      `${'['.repeat(MAX_REDACT_DEPTH)}"[REDACTED]"${']'.repeat(MAX_REDACT_DEPTH)}`,
    );
  });

  it.each([undefined, null, 7, true])('that is no string and no object stays: %j', (value) => {
    expect(redactDeep(value, set)).toBe(value);
  });
});
