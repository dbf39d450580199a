import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { BackOff } from '../../../src/events/backOff.js';
import { PlatformError } from '../../../src/platform/platformError.js';
import { silent } from '../../support/fleet.js';

const PLANE = 'https://plane.example';

function world(random = () => 0.5) {
  let now = 0;
  let woken = 0;
  const wake = (): Promise<void> => {
    woken += 1;
    return Promise.resolve();
  };
  const backOff = new BackOff({ wake, log: silent, random, now: () => now });
  return {
    pass: (ms: number) => (now += ms),
    woken: () => woken,
    refuse: () => backOff.refused('run_1'),
    succeed: (runId = 'other', plane = PLANE) => backOff.succeeded(plane, runId),
    fail: (options: { runId?: string; retryAfterMs?: number } = {}) => {
      const { runId = 'run_1', retryAfterMs } = options;
      const error = new PlatformError('PLATFORM_STATUS', 'telemetry: 503', {
        endpoint: 'telemetry',
        retryAfterMs,
      });
      return backOff.failed(PLANE, runId, error);
    },
  };
}

describe('a refusal', () => {
  it('is believed once it has lasted for half a minute, and counts from the first after a success', () => {
    const { refuse, succeed, pass } = world(() => 0);
    expect([refuse(), refuse()]).toEqual([250, 500]);
    pass(29_000);
    expect(refuse()).toBe(1_000);
    succeed('run_1');
    expect(refuse()).toBe(250);
    pass(30_000);
    expect(refuse()).toBeNull();
    expect(refuse()).toBe(250);
  });

  it('that is followed by another failure begins anew', () => {
    const { refuse, fail, pass } = world(() => 0);
    refuse();
    fail();
    pass(30_000);
    expect(refuse()).not.toBeNull();
  });
});

describe('a lane that could not be shipped', () => {
  it('waits longer with every failure, with jitter and never beyond 15 s', () => {
    const { fail } = world(Math.random);
    for (let failures = 1; failures < 60; failures++) {
      const bound = Math.min(15_000, 500 * 2 ** (failures - 1));
      const waitMs = fail();
      expect(waitMs).toBeLessThanOrEqual(bound);
      expect(waitMs).toBeGreaterThanOrEqual(bound / 2);
    }
  });

  it('begins anew after a success of its own, and after a minute without a try', () => {
    const { fail, succeed, pass } = world(() => 0);
    expect([fail(), fail(), fail()]).toEqual([250, 500, 1_000]);
    expect(fail({ runId: 'run_2' })).toBe(250);
    succeed('run_2');
    expect(fail()).toBe(2_000);
    succeed('run_1');
    expect(fail()).toBe(250);
    expect(fail()).toBe(500);
    pass(60_000);
    expect(fail()).toBe(250);
  });

  it('waits as long as it is asked to, up to 15 s, and not less than its own back-off', () => {
    const { fail } = world(() => 0);
    expect(fail({ retryAfterMs: 4_000 })).toBe(4_000);
    expect(fail({ retryAfterMs: 3_600_000 })).toBe(15_000);
    expect(fail({ retryAfterMs: 10 })).toBe(1_000);
  });

  it('is woken with all others by the first success after an outage, once', () => {
    const { succeed, fail, pass, woken } = world();
    fail();
    pass(20_000);
    fail();
    expect(woken()).toBe(0);
    succeed();
    succeed();
    expect(woken()).toBe(1);
  });

  it('is not woken by every success of the others when it alone fails (P50)', () => {
    const { succeed, fail, pass, woken } = world();
    for (let second = 0; second < 60; second++) {
      fail();
      for (let i = 0; i < 4; i++) {
        pass(250);
        succeed();
      }
    }
    expect(woken()).toBe(0);
  });

  it('is not woken by a success at another control plane', () => {
    const { succeed, fail, pass, woken } = world();
    fail();
    pass(5_000);
    succeed('other', 'https://other.example');
    expect(woken()).toBe(0);
  });

  it('comes back by itself when waking fails', async () => {
    let now = 0;
    const lines: string[] = [];
    const log = pino({}, { write: (line) => lines.push(line) });
    const wake = (): Promise<void> => Promise.reject(new Error('Redis is away'));
    const backOff = new BackOff({ wake, log, random: () => 0, now: () => now });
    const late = new PlatformError('PLATFORM_TIMEOUT', 'late', { endpoint: 'telemetry' });
    backOff.failed(PLANE, 'run_1', late);
    now = 5_000;
    backOff.succeeded(PLANE, 'run_1');
    await expect.poll(() => lines.at(-1)).toContain('"reason":"Redis is away"');
    // Nothing is left of the outage but the log line: the next failure is a first one again, and is told as one.
    expect(backOff.failed(PLANE, 'run_1', late)).toBe(250);
    expect(lines.at(-1)).toContain('"reason":"late"');
  });
});
