import { describe, expect, it, vi } from 'vitest';
import { Fence, type Clocks, type LockTiming } from '../../../src/executor/fence.js';

const TIMING: LockTiming = { lockMs: 60_000, renewMs: 10_000, marginMs: 10_000 };

/** Clocks that only move when told to. */
function steeredClocks(): Clocks & {
  advance(ms: number): void;
  stepWall(ms: number): void;
  suspend(ms: number): void;
} {
  let mono = 1_000;
  let wall = 1_893_456_000_000;
  return {
    mono: () => mono,
    wall: () => wall,
    advance: (ms) => {
      mono += ms;
      wall += ms;
    },
    stepWall: (ms) => {
      wall += ms;
    },
    // While a host sleeps its monotonic clock stands still.
    suspend: (ms) => {
      wall += ms;
    },
  };
}

function fenceAt(clocks: Clocks, sentAgoMs = 0): Fence {
  return new Fence(clocks.mono() - sentAgoMs, TIMING, clocks);
}

describe('a fence', () => {
  it('lets an attempt act until the margin before its lock could lapse, counted from when the fetch was sent', () => {
    const clocks = steeredClocks();
    const fence = fenceAt(clocks, 5_000);
    expect(fence.remainingMs()).toBe(45_000);
    clocks.advance(44_999);
    expect(fence.check()).toBe(true);
    clocks.advance(1);
    expect(fence.check()).toBe(false);
    expect(fence.reason).toBe('lock_expiring');
    expect(fence.signal.aborted).toBe(true);
  });

  it('falls at the first question after a freeze in which no timer ran (P12)', () => {
    const clocks = steeredClocks();
    const fence = fenceAt(clocks);
    clocks.advance(3 * TIMING.lockMs);
    expect(fence.signal.aborted).toBe(false);
    expect(fence.check()).toBe(false);
    expect(fence.signal.aborted).toBe(true);
  });

  it('falls after a suspend that the monotonic clock did not see', () => {
    const clocks = steeredClocks();
    const fence = fenceAt(clocks);
    clocks.suspend(50_000);
    expect(fence.check()).toBe(false);
  });

  it('is not fooled by a wall clock that is set back', () => {
    const clocks = steeredClocks();
    const fence = fenceAt(clocks);
    clocks.stepWall(-300_000);
    clocks.advance(49_999);
    expect(fence.check()).toBe(true);
    clocks.advance(1);
    expect(fence.check()).toBe(false);
  });

  it('counts a renewal from when it was sent, not from when it was answered', () => {
    const clocks = steeredClocks();
    const fence = fenceAt(clocks);
    clocks.advance(10_000);
    const sentAt = clocks.mono();
    clocks.advance(8_000);
    fence.extend(sentAt);
    expect(fence.remainingMs()).toBe(42_000);
  });

  it('keeps the newer base when answers of renewals arrive out of order', () => {
    const clocks = steeredClocks();
    const fence = fenceAt(clocks);
    clocks.advance(20_000);
    fence.extend(clocks.mono());
    fence.extend(clocks.mono() - 15_000);
    expect(fence.remainingMs()).toBe(50_000);
  });

  it('does not rise again for a renewal that was answered too late', () => {
    const clocks = steeredClocks();
    const fence = fenceAt(clocks);
    clocks.advance(49_000);
    const sentAt = clocks.mono();
    clocks.advance(2_000);
    fence.extend(sentAt);
    expect(fence.check()).toBe(false);
    expect(fence.remainingMs()).toBe(0);
  });

  it('keeps the first reason', () => {
    const fence = fenceAt(steeredClocks());
    fence.fall('lease_lost');
    fence.fall('handed_back');
    expect(fence.reason).toBe('lease_lost');
    expect(fence.signal.reason).toBe('lease_lost');
  });

  it('falls by itself when nobody asks', () => {
    vi.useFakeTimers();
    try {
      const fence = new Fence(performance.now(), TIMING);
      vi.advanceTimersByTime(49_999);
      expect(fence.signal.aborted).toBe(false);
      vi.advanceTimersByTime(10);
      expect(fence.signal.aborted).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  it('leaves no timer behind once it is retired (P28)', () => {
    vi.useFakeTimers();
    try {
      const fence = new Fence(performance.now(), TIMING);
      fence.retire();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});
