import { describe, expect, it } from 'vitest';
import { isCursor, makeCursor, nextBlockAfter, splitCursor, STRIDE } from '../../../src/contract/cursors.js';
import { named, vectorCases, type VectorCase } from './vectors.js';

interface CursorCase extends VectorCase {
  readonly turn: number;
  readonly seq: number;
  readonly cursor?: number;
  readonly error?: true;
}

const cases = vectorCases<CursorCase>('run-events', 174).filter(({ type }) => type === 'cursor');

describe('a cursor', () => {
  it.each(named(cases))('%s', (_name, { turn, seq, cursor, error }) => {
    if (error === true) expect(() => makeCursor(turn, seq)).toThrow(RangeError);
    else expect(makeCursor(turn, seq)).toBe(cursor);
  });

  it('comes apart into what it was made from', () => {
    for (const [block, seq] of [
      [0, 1],
      [0, STRIDE - 1],
      [7, 42],
      [9_007_199_253, 1],
    ] as const)
      expect(splitCursor(makeCursor(block, seq))).toEqual({ block, seq });
  });

  it.each([0, -1, 1.5, STRIDE, 3 * STRIDE, NaN, Infinity, 2 ** 53])('is never %d', (value) => {
    expect(isCursor(value)).toBe(false);
    expect(() => splitCursor(value)).toThrow(RangeError);
  });
});

describe('the block in which a process begins', () => {
  it('is the first one when nothing is stored, else the one behind the stored maximum', () => {
    expect(nextBlockAfter(0)).toBe(0);
    expect(nextBlockAfter(1)).toBe(1);
    expect(nextBlockAfter(STRIDE - 1)).toBe(1);
    expect(nextBlockAfter(3 * STRIDE + 2)).toBe(4);
  });

  it('lies behind every stored cursor', () => {
    for (const stored of [1, 999_999, 1_000_001, 7_000_042])
      expect(makeCursor(nextBlockAfter(stored), 1)).toBeGreaterThan(stored);
  });

  it.each([-1, 1.5, NaN])('is not derived from %d', (stored) => {
    expect(() => nextBlockAfter(stored)).toThrow(RangeError);
  });
});
