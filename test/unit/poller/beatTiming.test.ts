import { describe, expect, it } from 'vitest';
import { beatInterval, grantedMs } from '../../../src/poller/beatTiming.js';

describe('what a heartbeat grants', () => {
  it('is counted by the clock that wrote it, whatever ours says', () => {
    const serverNow = 1_000_000;
    expect(grantedMs(serverNow + 120_000, serverNow, 77_000_000)).toBe(120_000);
  });

  it('is counted by our clock when the server tells none', () => {
    expect(grantedMs(1_120_000, null, 1_000_000)).toBe(120_000);
  });

  it('is between nothing and 300 s', () => {
    expect(grantedMs(1_000, 2_000, 0)).toBe(0);
    expect(grantedMs(9_000_000, 0, 0)).toBe(300_000);
  });
});

describe('the next beat (R22)', () => {
  it.each([
    ['60 s under a lease of 300 s', 300_000, 300_000, 60_000],
    ['a third of what is left', 90_000, 300_000, 30_000],
    ['no sooner than 5 s when little is left of a long lease', 6_000, 300_000, 5_000],
    ['a third of a 20 s lease', 20_000, 20_000, 20_000 / 3],
    ['a third of a 3 s lease', 3_000, 3_000, 1_000],
    ['still a third of a 3 s lease when less is left', 600, 3_000, 1_000],
    ['seldom when a long lease has run out', -1, 300_000, 15_000],
    ['at the own pace of a short lease that has run out', 0, 3_000, 1_000],
    ['5 s when the answer made no sense', 0, 0, 5_000],
  ])('comes after %s', (_words, remaining, length, interval) => {
    expect(beatInterval(remaining, length)).toBeCloseTo(interval);
  });

  it('never comes in a hot loop', () => {
    expect(beatInterval(1, 1)).toBeGreaterThanOrEqual(100);
  });
});
