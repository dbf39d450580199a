import { describe, expect, it } from 'vitest';
import { RETRY_DELAYS_MS } from '../../../src/contract/callPolicy.js';
import { fullJitter, retryDelay } from '../../../src/platform/backoff.js';

const delays = (random: number): (number | null)[] =>
  [1, 2, 3, 4, 5].map((failures) => retryDelay(failures, undefined, () => random));

describe('the retry policy', () => {
  it('waits 0.5, 2, 5 and 10 s around the middle of its jitter, and makes five attempts', () => {
    expect(delays(0.5)).toEqual([...RETRY_DELAYS_MS, null]);
  });

  it('strays by a quarter to both sides', () => {
    expect(delays(0)).toEqual([375, 1_500, 3_750, 7_500, null]);
    expect(delays(1)).toEqual([625, 2_500, 6_250, 12_500, null]);
  });

  it('waits longer when the answer asks for it, but not for ever', () => {
    expect(retryDelay(1, 3_000, () => 0.5)).toBe(3_000);
    expect(retryDelay(1, 3_600_000, () => 0.5)).toBe(10_000);
  });
});

describe('full jitter', () => {
  it('grows to its ceiling and may be nothing', () => {
    const at = (failures: number, random: number): number =>
      fullJitter(failures, { baseMs: 500, ceilingMs: 10_000, random: () => random });
    expect([1, 2, 3, 4, 5, 6, 2_000].map((failures) => at(failures, 1))).toEqual([
      500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000,
    ]);
    expect(at(6, 0)).toBe(0);
  });
});
