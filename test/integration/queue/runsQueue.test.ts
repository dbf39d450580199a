import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Fleet, RunsConsumer, TakenRun } from '../../../src/queue/fleet.js';
import { generateFleetKey, parseFleetKeys } from '../../../src/queue/seal.js';
import { jobOf, openTestFleet, someClaim } from '../../support/fleet.js';
import { startProgram } from '../../support/program.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';

const LOCK_MS = 1_000;
const never = new AbortController().signal;

let redis: TestRedis;
let fleet: Fleet;
const keyText = generateFleetKey();
const consumers: RunsConsumer[] = [];

beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.cli('FLUSHALL');
  fleet = await openTestFleet(redis, { keys: parseFleetKeys(keyText) });
});
afterEach(async () => {
  await Promise.all(consumers.splice(0).map((consumer) => consumer.stop()));
  await fleet.close();
});

function startConsumer(lockMs = 60_000, pool = 'default'): RunsConsumer {
  const consumer = fleet.runs.consumer(pool, { lockMs, stalledCheckMs: lockMs / 5 });
  consumer.start();
  consumers.push(consumer);
  return consumer;
}

async function takeOne(consumer: RunsConsumer): Promise<TakenRun> {
  for (;;) {
    const taken = await consumer.take(never);
    if (taken !== null) return taken;
  }
}

const lockKey = (taken: TakenRun) => fleet.keys.jobLock(taken.queueName, taken.jobId);

describe('adding', () => {
  it('makes a job under 2 KB that holds ids and times, nothing else (P7)', async () => {
    const long = 'x'.repeat(200);
    const job = { ...jobOf(someClaim()), runId: long, leaseId: long, assignmentId: long, workflowId: long };
    await fleet.runs.add(job);
    const stored = [...(await redis.dump())].filter(([key]) => key.includes(fleet.keys.runJobId(long)));
    expect(stored).toHaveLength(1);
    expect(stored[0]?.[1].length).toBeLessThan(2_048);
    expect((await takeOne(startConsumer())).job).toEqual(job);
  });

  it('repeated makes no second job; another claim of the same run makes one', async () => {
    const claim = someClaim();
    await Promise.all([fleet.runs.add(jobOf(claim)), fleet.runs.add(jobOf(claim))]);
    expect(await fleet.runs.depth('default')).toEqual({ waiting: 1, active: 0, delayed: 0 });
    await fleet.runs.add(jobOf({ ...claim, leaseId: 'lse_next' }));
    expect(await fleet.runs.depth('default')).toEqual({ waiting: 2, active: 0, delayed: 0 });
  });

  it('takes any pool and lease, also those that the queue library refuses', async () => {
    const job = jobOf(someClaim({ pool: 'eu:north/1', leaseId: '12:34' }));
    await fleet.runs.add(job);
    expect((await takeOne(startConsumer(60_000, 'eu:north/1'))).job).toEqual(job);
  });
});

describe('taking', () => {
  it('gives a run to one of many, each time under a fresh lock', async () => {
    const claims = Array.from({ length: 20 }, (_, n) => someClaim({ runId: `run_${n}` }));
    for (const claim of claims) await fleet.runs.add(jobOf(claim));
    const taken = await Promise.all(
      [startConsumer(), startConsumer(), startConsumer(), startConsumer()].map(async (consumer) => {
        const mine = [];
        while (mine.length < 5) mine.push(await takeOne(consumer));
        return mine;
      }),
    );
    expect(new Set(taken.flat().map((each) => each.job.runId)).size).toBe(20);
    expect(new Set(taken.flat().map((each) => each.lockToken)).size).toBe(20);
    expect(await fleet.runs.depth('default')).toEqual({ waiting: 0, active: 20, delayed: 0 });
  });

  it('keeps the order in which claims came', async () => {
    const order = ['a', 'b', 'c', 'd'];
    for (const runId of order) await fleet.runs.add(jobOf(someClaim({ runId })));
    const consumer = startConsumer();
    const taken: string[] = [];
    while (taken.length < order.length) taken.push((await takeOne(consumer)).job.runId);
    expect(taken).toEqual(order);
  });

  it('wakes up for a run that comes while it waits', async () => {
    const consumer = startConsumer();
    await consumer.take(never);
    const waiting = takeOne(consumer);
    await blockedClient();
    await fleet.runs.add(jobOf(someClaim({ runId: 'run_late' })));
    expect((await waiting).job.runId).toBe('run_late');
  });

  it('ends at once when it is told to, and takes the next run afterwards', async () => {
    const consumer = startConsumer();
    await consumer.take(never);
    const stop = new AbortController();
    const waiting = consumer.take(stop.signal);
    await blockedClient();
    stop.abort();
    expect(await waiting).toBeNull();
    expect(await consumer.take(AbortSignal.abort())).toBeNull();
    await fleet.runs.add(jobOf(someClaim({ runId: 'run_next' })));
    expect((await takeOne(consumer)).job.runId).toBe('run_next');
  });

  it('gives back what it fetched after it was told to end (P14)', async () => {
    await fleet.runs.add(jobOf(someClaim({ runId: 'run_1' })));
    const consumer = startConsumer();
    const sleeping = redis.cli('DEBUG', 'SLEEP', '0.3');
    const stop = new AbortController();
    const taking = consumer.take(stop.signal);
    stop.abort();
    expect(await taking).toBeNull();
    await sleeping;
    await consumer.stop();
    expect((await takeOne(startConsumer())).job.runId).toBe('run_1');
  });

  it('says when its fetch was sent, not when it was answered', async () => {
    await fleet.runs.add(jobOf(someClaim()));
    const consumer = startConsumer();
    const sleeping = redis.cli('DEBUG', 'SLEEP', '0.2');
    const before = performance.now();
    const taken = await takeOne(consumer);
    await sleeping;
    expect(taken.fetchedAtMonoMs).toBeGreaterThanOrEqual(before);
    expect(taken.fetchedAtMonoMs).toBeLessThan(before + 200);
  });

  it('waits while Redis refuses to write, and loses nothing (P8)', async () => {
    await fleet.runs.add(jobOf(someClaim({ runId: 'run_1' })));
    const consumer = startConsumer();
    await redis.cli('CONFIG', 'SET', 'maxmemory', '1');
    expect(await consumer.take(never)).toBeNull();
    await redis.cli('CONFIG', 'SET', 'maxmemory', '0');
    expect((await takeOne(consumer)).job.runId).toBe('run_1');
  });

  it('sets a job aside that only a newer version can read', async () => {
    await fleet.runs.add(jobOf(someClaim({ runId: 'run_1', leaseId: 'one' })));
    await redis.cli('HSET', '{bwf:test}:runs.default:lease.one', 'data', '{"v":2}');
    await fleet.runs.add(jobOf(someClaim({ runId: 'run_2' })));
    expect((await takeOne(startConsumer())).job.runId).toBe('run_2');
    expect(await fleet.runs.depth('default')).toEqual({ waiting: 0, active: 1, delayed: 1 });
  });
});

describe('completing', () => {
  it('leaves nothing of the job, and may be repeated', async () => {
    await fleet.runs.add(jobOf(someClaim({ leaseId: 'one' })));
    const taken = await takeOne(startConsumer());
    expect(await taken.complete()).toBe('completed');
    expect(await taken.complete()).toBe('completed');
    expect(await fleet.runs.depth('default')).toEqual({ waiting: 0, active: 0, delayed: 0 });
    expect([...(await redis.dump()).keys()].filter((key) => key.includes('lease.one'))).toEqual([]);
  });

  it('and handing back are refused without the lock, whoever has it', async () => {
    await fleet.runs.add(jobOf(someClaim()));
    const taken = await takeOne(startConsumer());
    await redis.cli('SET', lockKey(taken), 'successor');
    expect(await taken.complete()).toBe('not_owner');
    expect(await taken.handBack()).toBe('not_owner');
    await redis.cli('DEL', lockKey(taken));
    expect(await taken.complete()).toBe('not_owner');
    expect(await taken.handBack()).toBe('not_owner');
    expect(await fleet.runs.depth('default')).toMatchObject({ active: 1 });
  });
});

describe('handing back', () => {
  it('puts the run at the front, where another executor takes it at once', async () => {
    for (const runId of ['a', 'b']) await fleet.runs.add(jobOf(someClaim({ runId })));
    const first = await takeOne(startConsumer());
    expect(await first.handBack()).toBe('handed_back');
    expect(await first.handBack()).toBe('not_owner');
    const second = await takeOne(startConsumer());
    expect(second.job.runId).toBe('a');
    expect(second.lockToken).not.toBe(first.lockToken);
  });

  it('for later lets others go first, and wakes whoever waits when it is due', async () => {
    const [one, two] = [someClaim({ runId: 'run_1' }), someClaim({ runId: 'run_2' })];
    const consumer = startConsumer();
    await fleet.runs.add(jobOf(one));
    const first = await takeOne(consumer);
    expect(await first.handBack(300)).toBe('handed_back');
    expect(await fleet.runs.depth('default')).toEqual({ waiting: 0, active: 0, delayed: 1 });
    await fleet.runs.add(jobOf(two));
    expect((await takeOne(consumer)).job.runId).toBe('run_2');
    expect((await takeOne(consumer)).job.runId).toBe('run_1');
    expect(await first.handBack(300)).toBe('not_owner');
  });
});

describe('a lock', () => {
  it('that is renewed keeps the run, with the stalled check running beside it', async () => {
    const claim = someClaim();
    await fleet.runStates.recordClaim(claim);
    await fleet.runs.add(jobOf(claim));
    const taken = await takeOne(startConsumer(LOCK_MS));
    await fleet.runStates.startAttempt({ ...claim, executorId: 'e', attemptToken: 't', lock: taken });
    const other = startConsumer(LOCK_MS);
    const until = performance.now() + LOCK_MS * 2;
    while (performance.now() < until) {
      const stop = AbortSignal.timeout(LOCK_MS / 5);
      expect(await other.take(stop)).toBeNull();
      const renewal = {
        runId: claim.runId,
        attemptToken: 't',
        queue: taken.queueName,
        ...taken,
        lockMs: LOCK_MS,
      };
      expect(await fleet.runStates.renewAttempt(renewal)).toMatchObject({ outcome: 'renewed' });
    }
    expect(await taken.complete()).toBe('completed');
  });

  it('of a killed holder lapses, and another gets the run without anybody asking (P17)', async () => {
    const holder = startProgram('takeAndHold', redis.url, keyText, String(LOCK_MS));
    await fleet.runs.add(jobOf(someClaim({ runId: 'run_1' })));
    expect(await holder.line()).toBe('run_1');
    const consumer = startConsumer(LOCK_MS);
    const stop = AbortSignal.timeout(LOCK_MS / 5);
    expect(await consumer.take(stop)).toBeNull();
    holder.process.kill('SIGKILL');
    const taken = await takeOne(consumer);
    expect(taken.job.runId).toBe('run_1');
    expect(await taken.complete()).toBe('completed');
  });

  it('that lapsed is not its holder’s any more, who finds out at every turn (P12)', async () => {
    const claim = someClaim();
    await fleet.runStates.recordClaim(claim);
    await fleet.runs.add(jobOf(claim));
    const frozen = await takeOne(startConsumer(LOCK_MS));
    await fleet.runStates.startAttempt({ ...claim, executorId: 'e1', attemptToken: 'frozen', lock: frozen });
    const successor = await takeOne(startConsumer(LOCK_MS));
    const late = { ...claim, executorId: 'e1', attemptToken: 'late', lock: frozen };
    expect(await fleet.runStates.startAttempt(late)).toEqual({ outcome: 'superseded' });
    const started = { ...claim, executorId: 'e2', attemptToken: 'successor', lock: successor };
    expect(await fleet.runStates.startAttempt(started)).toMatchObject({ outcome: 'started', restarts: 1 });
    const renewal = {
      runId: claim.runId,
      attemptToken: 'frozen',
      queue: frozen.queueName,
      ...frozen,
      lockMs: LOCK_MS,
    };
    expect(await fleet.runStates.renewAttempt(renewal)).toEqual({ outcome: 'foreign_attempt' });
    expect(await frozen.complete()).toBe('not_owner');
    expect(await successor.complete()).toBe('completed');
  });
});

/** Resolves once somebody waits in a blocking read. */
async function blockedClient(): Promise<void> {
  while (!/blocked_clients:[1-9]/.test(String(await redis.cli('INFO', 'clients'))));
}
