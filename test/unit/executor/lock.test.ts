import { pino } from 'pino';
import { describe, expect, it, vi } from 'vitest';
import { Fence, systemClocks, type LockTiming } from '../../../src/executor/fence.js';
import { AttemptLock } from '../../../src/executor/lock.js';
import type { RenewOutcome } from '../../../src/queue/runState.js';

/** The figures of design section 5, scaled together. */
const TIMING: LockTiming = { lockMs: 600, renewMs: 60, marginMs: 100 };

interface World {
  readonly fence: Fence;
  readonly lock: AttemptLock;
  readonly renewals: number[];
  readonly cancels: () => number;
}

function world(answer: (n: number) => Promise<RenewOutcome>): World {
  const fence = new Fence(performance.now(), TIMING, systemClocks);
  const renewals: number[] = [];
  let cancels = 0;
  const lock = new AttemptLock({
    runStates: {
      renewAttempt: () => {
        renewals.push(performance.now());
        return answer(renewals.length);
      },
    },
    taken: {
      job: {
        v: 1,
        runId: 'run-1',
        leaseId: 'lease-1',
        assignmentId: 'as-1',
        workflowId: 'wf-1',
        pool: 'default',
        claimedAtMs: 0,
        queuedAtMs: 0,
      },
      jobId: 'job-1',
      lockToken: 'lock-token',
      queueName: 'runs.default',
    },
    attemptToken: 'attempt-token',
    fence,
    timing: TIMING,
    clocks: systemClocks,
    log: pino({ level: 'silent' }),
    onCancelRequested: () => {
      cancels += 1;
    },
  });
  return { fence, lock, renewals, cancels: () => cancels };
}

const RENEWED: RenewOutcome = { outcome: 'renewed', cancelRequested: false };

/** Waits on what happens, however slow the machine is. */
function eventually(assertion: () => void): Promise<void> {
  return vi.waitFor(assertion, { timeout: 5_000, interval: 5 });
}

describe('the queue lock of an attempt', () => {
  it('is renewed again and again, and each renewal moves the fence', async () => {
    const { fence, lock, renewals } = world(() => Promise.resolve(RENEWED));
    lock.start();
    await eventually(() => expect(renewals.length).toBeGreaterThanOrEqual(12));
    expect(fence.check()).toBe(true);
    await lock.stop();
    fence.retire();
  });

  it.each(['lock_lost', 'superseded', 'lease_lost', 'foreign_attempt'] as const)(
    'that is answered %s lets the fence fall with that reason',
    async (outcome) => {
      const { fence, lock } = world(() => Promise.resolve({ outcome }));
      lock.start();
      await eventually(() => expect(fence.reason).toBe(outcome));
      await lock.stop();
    },
  );

  it('that Redis never answers for lets the fence fall by the clock, and sends nothing more', async () => {
    const { fence, lock, renewals } = world(() => new Promise<RenewOutcome>(() => undefined));
    lock.start();
    await eventually(() => expect(fence.reason).toBe('lock_expiring'));
    expect(renewals).toHaveLength(1);
    await lock.stop();
  });

  it('goes on after errors of Redis as long as there is time (P8)', async () => {
    const { fence, lock, renewals } = world((n) =>
      n <= 3 ? Promise.reject(new Error('MISCONF Redis is configured to save')) : Promise.resolve(RENEWED),
    );
    lock.start();
    await eventually(() => expect(renewals.length).toBeGreaterThanOrEqual(8));
    expect(fence.check()).toBe(true);
    await lock.stop();
    fence.retire();
  });

  it('passes on that a stop is wanted and is no fence for it', async () => {
    const { fence, lock, cancels } = world(() =>
      Promise.resolve({ outcome: 'renewed', cancelRequested: true }),
    );
    lock.start();
    await eventually(() => expect(cancels()).toBeGreaterThanOrEqual(1));
    expect(fence.check()).toBe(true);
    await lock.stop();
    fence.retire();
  });

  it('is not renewed any more after its end, also when a renewal is under way', async () => {
    let answer: (outcome: RenewOutcome) => void = () => undefined;
    const { fence, lock, renewals } = world(
      () =>
        new Promise<RenewOutcome>((resolve) => {
          answer = resolve;
        }),
    );
    lock.start();
    await eventually(() => expect(renewals).toHaveLength(1));
    await lock.stop();
    answer(RENEWED);
    await new Promise((resolve) => setTimeout(resolve, 3 * TIMING.renewMs));
    expect(renewals).toHaveLength(1);
    fence.retire();
  });
});
