import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { flushBackoffMs } from '../../../src/queue/eventsWorker.js';
import type { EventsWorker, Flush, FlushContext, Fleet } from '../../../src/queue/fleet.js';
import { openTestFleet, startedRun } from '../../support/fleet.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';

let redis: TestRedis;
let fleet: Fleet;
const workers: EventsWorker[] = [];

beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.cli('FLUSHALL');
  fleet = await openTestFleet(redis);
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  await fleet.close();
});

function startWorker(flush: Flush, options: { concurrency?: number; lockMs?: number } = {}): EventsWorker {
  const worker = fleet.flushes.worker(flush, { concurrency: 4, ...options });
  worker.start();
  workers.push(worker);
  return worker;
}

/** A promise with its handle outside. */
function signal(): { readonly promise: Promise<unknown>; readonly resolve: (value?: unknown) => void } {
  let resolve: ((value?: unknown) => void) | undefined;
  const promise = new Promise<unknown>((settle) => (resolve = settle));
  return { promise, resolve: (value) => resolve?.(value) };
}

async function untilCounts(expected: { waiting: number; active: number; delayed: number }): Promise<void> {
  await expect.poll(() => fleet.flushes.counts(), { timeout: 10_000, interval: 10 }).toEqual(expected);
}
const NOTHING = { waiting: 0, active: 0, delayed: 0 };

describe('a flush job', () => {
  it('is one a run, however often it is asked for', async () => {
    await Promise.all(['a', 'a', 'b', 'a'].map((runId) => fleet.flushes.add(runId)));
    expect(await fleet.flushes.counts()).toEqual({ waiting: 2, active: 0, delayed: 0 });
  });

  it('holds a run id and nothing else, and leaves nothing behind', async () => {
    await fleet.flushes.add('run_1');
    const stored = (await redis.dump()).get('{bwf:test}:flush:1');
    expect(stored).toContain(String.raw`"data":"{\"v\":1,\"runId\":\"run_1\"}"`);
    startWorker(() => Promise.resolve('drained'));
    await untilCounts(NOTHING);
    const left = [...(await redis.dump()).keys()].filter((key) =>
      /flush:(\d|de:|dn:|completed|failed)/.test(key),
    );
    expect(left).toEqual([]);
  });

  it('asked for while it runs runs once more afterwards, never beside itself', async () => {
    let running = 0;
    const seen: number[] = [];
    const started = signal();
    const go = signal();
    startWorker(async () => {
      seen.push(++running);
      started.resolve();
      await go.promise;
      running -= 1;
      return 'drained';
    });
    await fleet.flushes.add('a');
    await started.promise;
    await Promise.all([1, 2, 3].map(() => fleet.flushes.add('a')));
    go.resolve();
    await untilCounts(NOTHING);
    expect(seen).toEqual([1, 1]);
  });

  it('backs off when it could not ship, and is then not asked for twice', async () => {
    let tries = 0;
    startWorker(() => Promise.resolve(++tries === 1 ? 'retry' : 'drained'));
    await fleet.flushes.add('a');
    await untilCounts({ waiting: 0, active: 0, delayed: 1 });
    await fleet.flushes.add('a');
    expect(await fleet.flushes.counts()).toEqual({ waiting: 0, active: 0, delayed: 1 });
    await untilCounts(NOTHING);
    expect(tries).toBe(2);
  });

  it('asked for while a try of it fails is not forgotten, though the job that backs off still holds its name', async () => {
    const attempts: number[] = [];
    const started = signal();
    const go = signal();
    startWorker(async (_, context) => {
      attempts.push(context.attempt);
      started.resolve();
      await go.promise;
      return attempts.length < 3 ? 'retry' : 'drained';
    });
    await fleet.flushes.add('a');
    await started.promise;
    await fleet.flushes.add('a');
    go.resolve();
    await untilCounts(NOTHING);
    // Three tries of the first job, then the one that was asked for meanwhile.
    expect(attempts).toEqual([1, 2, 3, 1]);
  });

  it('that throws backs off as one that could not ship', async () => {
    let tries = 0;
    startWorker(() => (++tries === 1 ? Promise.reject(new Error('a bug')) : Promise.resolve('drained')));
    await fleet.flushes.add('a');
    await untilCounts({ waiting: 0, active: 0, delayed: 1 });
    await fleet.flushes.wakeDelayed();
    await untilCounts(NOTHING);
    expect(tries).toBe(2);
  });

  it('gives way to others, who are served before it comes again', async () => {
    const order: string[] = [];
    for (const runId of ['hot', 'b', 'c']) await fleet.flushes.add(runId);
    startWorker(
      async (runId, context) => {
        order.push(runId);
        return (await context.othersWaiting()) && runId === 'hot' ? 'yield' : 'drained';
      },
      { concurrency: 1 },
    );
    await untilCounts(NOTHING);
    await expect.poll(() => order).toEqual(['hot', 'b', 'c', 'hot']);
  });
});

describe('an outage of the control plane', () => {
  it('ends for all lanes with the first success', async () => {
    const shipped: string[] = [];
    let away = true;
    const runs = Array.from({ length: 50 }, (_, n) => `run_${n}`);
    startWorker((runId) => {
      if (away) return Promise.resolve('retry');
      shipped.push(runId);
      return Promise.resolve('drained');
    });
    for (const runId of runs) await fleet.flushes.add(runId);
    await untilCounts({ waiting: 0, active: 0, delayed: 50 });
    away = false;
    await fleet.flushes.wakeDelayed();
    await untilCounts(NOTHING);
    expect(shipped.toSorted()).toEqual(runs.toSorted());
  });

  it('backs off with jitter, and never longer than 15 s', () => {
    const delays = Array.from({ length: 500 }, (_, n) => flushBackoffMs(n + 1));
    expect(Math.max(...delays)).toBeLessThanOrEqual(15_000);
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(250);
    expect(Math.min(...delays.slice(10))).toBeGreaterThanOrEqual(7_500);
    expect(new Set(delays.slice(10)).size).toBeGreaterThan(100);
  });
});

describe('the signal of a flush', () => {
  it('falls when the lock of its job is lost (P12)', async () => {
    const seen = signal();
    startWorker(untilAborted(seen.resolve), { lockMs: 400 });
    await fleet.flushes.add('a');
    await expect.poll(() => redis.cli('SET', '{bwf:test}:flush:1:lock', 'another', 'XX')).toBe('OK');
    expect(await seen.promise).toBe('lock_lost');
  });

  it('falls by our own clock when renewals stay away', async () => {
    const seen = signal();
    const started = signal();
    startWorker(
      (runId, context) => {
        started.resolve();
        return untilAborted(seen.resolve)(runId, context);
      },
      { lockMs: 400 },
    );
    await fleet.flushes.add('a');
    await started.promise;
    const sleeping = redis.cli('DEBUG', 'SLEEP', '0.8');
    expect(await seen.promise).toBe('lock_lapsing');
    await sleeping;
  });

  it('stays up as long as the lock is renewed', async () => {
    const go = signal();
    let context: FlushContext | undefined;
    startWorker(
      async (_, given) => {
        context = given;
        await go.promise;
        return 'drained';
      },
      { lockMs: 400 },
    );
    await fleet.flushes.add('a');
    await delay(1_500);
    expect(context?.signal.aborted).toBe(false);
    expect(await fleet.flushes.counts()).toMatchObject({ active: 1 });
    go.resolve();
  });

  it('falls when the worker stops, which waits for the batch in flight', async () => {
    const started = signal();
    let ended = false;
    const worker = startWorker(async (_, context) => {
      started.resolve();
      await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
      await delay(50);
      ended = true;
      return 'drained';
    });
    await fleet.flushes.add('a');
    await started.promise;
    await worker.stop();
    await worker.stop();
    expect(ended).toBe(true);
    expect(await fleet.flushes.counts()).toEqual(NOTHING);
  });
});

describe('shippers together', () => {
  it('ship every lane in order and forget none, while a fifth of all batches fails', async () => {
    const runs = Array.from({ length: 12 }, (_, n) => `run_${n}`);
    const shipped = new Map(runs.map((runId) => [runId, new Array<number>()]));
    const held = new Set<string>();
    let batches = 0;
    const ship: Flush = async (runId) => {
      if (held.has(runId)) throw new Error(`${runId} is held twice`);
      held.add(runId);
      try {
        for (;;) {
          const head = await fleet.lanes.head(runId, { maxRows: 5, maxBytes: 1_000 });
          const last = head.at(-1);
          if (last === undefined) return 'drained';
          if (++batches % 5 === 0) return 'retry';
          for (const entry of head) if (entry.kind === 'row') shipped.get(runId)?.push(entry.cursor);
          await fleet.lanes.trim(runId, last.id);
        }
      } finally {
        held.delete(runId);
      }
    };
    startWorker(ship, { concurrency: 3 });
    startWorker(ship, { concurrency: 3 });
    await Promise.all(
      runs.map(async (runId) => {
        await startedRun(fleet, 'mine', { runId });
        for (let cursor = 1; cursor <= 60; cursor++) {
          const appended = await fleet.lanes.append(runId, 'mine', [{ cursor, frame: `row ${cursor}` }]);
          if (appended.outcome === 'appended' && appended.needsFlush) await fleet.flushes.add(runId);
        }
      }),
    );
    const expected = Array.from({ length: 60 }, (_, index) => index + 1);
    await expect
      .poll(
        async () => {
          await fleet.flushes.wakeDelayed();
          return [...shipped.values()].every((cursors) => cursors.length === 60);
        },
        { timeout: 30_000 },
      )
      .toBe(true);
    for (const cursors of shipped.values()) expect(cursors).toEqual(expected);
    expect(await fleet.lanes.withWork(0, 100)).toEqual([]);
  });
});

function untilAborted(seen: (reason: unknown) => void): Flush {
  return async (_, context) => {
    await new Promise((resolve) => context.signal.addEventListener('abort', resolve, { once: true }));
    seen(context.signal.reason);
    return 'drained';
  };
}
