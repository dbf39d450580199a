import { describe, expect, it } from 'vitest';
import { HoldBack } from '../../../src/redaction/holdBack.js';
import { redact, REDACTED } from '../../../src/redaction/redact.js';
import { SecretSet } from '../../../src/redaction/secretSet.js';
import { seededRandom } from '../contract/vectors.js';

function setOf(...secrets: readonly string[]): SecretSet {
  const set = new SecretSet();
  for (const secret of secrets) set.add(secret);
  return set;
}

/** Every piece that a viewer would get. */
function shownOf(set: SecretSet, pieces: readonly string[]): string[] {
  const holdBack = new HoldBack(set);
  return [...pieces.map((piece) => holdBack.push(piece)), holdBack.flush()];
}

describe('a secret that is split over deltas (R16)', () => {
  const secret = 'sk-live-🌿-9x9x9';
  const set = setOf(secret, 'sk-live', 'other-secret');
  const text = `before ${secret} after, sk-live and sk-li`;
  const expected = 'before [REDACTED] after, [REDACTED] and sk-li';

  it('never gets out, wherever it is split in two', () => {
    for (let at = 0; at <= text.length; at += 1)
      expect(shownOf(set, [text.slice(0, at), text.slice(at)]).join('')).toBe(expected);
  });

  it('never gets out, wherever it is split in three', () => {
    for (let a = 0; a <= text.length; a += 1)
      for (let b = a; b <= text.length; b += 1)
        expect(shownOf(set, [text.slice(0, a), text.slice(a, b), text.slice(b)]).join('')).toBe(expected);
  });

  it('never gets out character by character', () => {
    expect(
      shownOf(
        set,
        Array.from({ length: text.length }, (_, at) => text.charAt(at)),
      ).join(''),
    ).toBe(expected);
  });
});

describe('what is held back', () => {
  it('is only what may be the beginning of a secret', () => {
    const holdBack = new HoldBack(setOf('hunter22'));
    expect(holdBack.push('hello ')).toBe('hello ');
    expect(holdBack.push('go hunt')).toBe('go ');
    expect(holdBack.push('ing now')).toBe('hunting now');
    expect(holdBack.push('hunter2')).toBe('');
    expect(holdBack.push('2')).toBe('[REDACTED]');
    expect(holdBack.flush()).toBe('');
  });

  it('is given out when the text ends, and forgotten when it is void', () => {
    const holdBack = new HoldBack(setOf('hunter22'));
    holdBack.push('hunter2');
    expect(holdBack.flush()).toBe('hunter2');
    expect(holdBack.flush()).toBe('');
    holdBack.push('hunter2');
    holdBack.discard();
    expect(holdBack.push('2')).toBe('2');
  });

  it('is nothing when there is no secret', () => {
    const holdBack = new HoldBack(new SecretSet());
    expect(holdBack.push('anything')).toBe('anything');
    expect(holdBack.push('')).toBe('');
  });

  it('is looked at again when a secret became known meanwhile', () => {
    const set = setOf('hunter22');
    const holdBack = new HoldBack(set);
    expect(holdBack.push('hunter')).toBe('');
    set.add('hunter33');
    expect(holdBack.push('33!')).toBe('[REDACTED]!');
  });

  it('stays below the longest secret, also when secrets overlap without an end', () => {
    const holdBack = new HoldBack(setOf('aaaa'));
    const shown = Array.from({ length: 10_000 }, () => holdBack.push('aaa'));
    expect(shown.join('')).toBe(REDACTED);
    expect(holdBack.flush()).toBe('');
    expect(holdBack.push('aab')).toBe('aab');
  });

  it('does not show the rest of a secret whose beginning belonged to another', () => {
    expect(shownOf(setOf('abcd', 'cdef'), ['xabcd', 'efx']).join('')).toBe('x[REDACTED]x');
    expect(shownOf(setOf('xxabcdyy', 'abcd'), ['xxabcd', 'yy']).join('')).toBe('[REDACTED]');
    expect(shownOf(setOf('xxabcdyy', 'abcd'), ['xxabcd', 'zz']).join('')).toBe('xx[REDACTED]zz');
    expect(shownOf(setOf('abcd', 'abcdef'), ['abcd', 'xy']).join('')).toBe('[REDACTED]xy');
  });
});

describe('fuzz: any secrets, any text, any cuts', () => {
  it('give together what the whole text gives at once, and no secret at any moment', () => {
    const random = seededRandom(20_260_101);
    const below = (limit: number): number => Math.floor(random() * limit);
    for (let round = 0; round < 2_500; round += 1) {
      // Few letters make overlaps, repetitions and near misses the rule.
      const letters = 'ab🌿c'.slice(0, 2 + below(4));
      const word = (length: number): string =>
        Array.from({ length }, () => letters.charAt(below(letters.length))).join('');
      const secrets = Array.from({ length: 1 + below(4) }, () => word(4 + below(6)));
      const set = setOf(...secrets);
      const text = Array.from({ length: below(8) }, () =>
        random() < 0.4 ? (secrets[below(secrets.length)] ?? '') : word(below(6)),
      ).join('');
      const pieces: string[] = [];
      for (let at = 0; at < text.length;) {
        const length = 1 + below(5);
        pieces.push(text.slice(at, at + length));
        at += length;
      }
      const shown = shownOf(set, pieces);
      expect(shown.join('')).toBe(redact(text, set));
      // Behind a replacement a new text begins; what stands between two of them must hold no secret.
      const between = shown.join('').split(REDACTED);
      expect(secrets.some((secret) => between.some((part) => part.includes(secret)))).toBe(false);
    }
  });
});
