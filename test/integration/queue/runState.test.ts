import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../../src/queue/fleet.js';
import { jobOf, openTestFleet, someClaim, startedRun } from '../../support/fleet.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';

let redis: TestRedis;
let fleet: Fleet;
beforeAll(async () => {
  redis = await startTestRedis();
  fleet = await openTestFleet(redis);
});
afterAll(async () => {
  await fleet.close();
  await redis.stop();
});

const startOf = (claim: { runId: string; leaseId: string }, attemptToken: string) =>
  fleet.runStates.startAttempt({
    runId: claim.runId,
    leaseId: claim.leaseId,
    executorId: 'exe_1',
    attemptToken,
  });

describe('recording a claim', () => {
  it('makes record and credential appear, and may be repeated', async () => {
    const claim = someClaim();
    expect(await fleet.runStates.recordClaim(claim)).toBe('recorded');
    expect(await fleet.runStates.recordClaim(claim)).toBe('repeated');
    expect(await fleet.credentials.run(claim.runId)).toEqual(claim);
    expect(await fleet.runStates.get(claim.runId)).toMatchObject({
      leaseId: claim.leaseId,
      phase: 'queued',
      claims: 1,
      attempt: 0,
      pool: 'default',
      claimedAtMs: claim.claimedAtMs,
    });
  });

  it('supersedes an older claim, whose attempts are fenced', async () => {
    const older = await startedRun(fleet, 'older');
    const newer = {
      ...older,
      leaseId: 'lse_newer',
      runToken: 'newer',
      leaseExpiresAtMs: older.leaseExpiresAtMs + 1,
    };
    await fleet.lanes.append(older.runId, 'older', [{ cursor: 7, frame: 'row' }]);
    expect(await fleet.runStates.recordClaim(newer)).toBe('recorded');

    expect(await startOf(older, 'again')).toEqual({ outcome: 'superseded' });
    expect(await fleet.lanes.append(older.runId, 'older', [{ cursor: 8, frame: 'row' }])).toEqual({
      outcome: 'foreign_attempt',
    });
    expect(await fleet.lanes.appendFinalize(older.runId, 'older', '{}')).toEqual({
      outcome: 'foreign_attempt',
    });
    expect(await fleet.runStates.setRunning(older.runId, 'older', 1)).toBe('foreign_attempt');
    expect(
      await fleet.runStates.endAttempt(older.runId, 'older', { endReason: 'timeout', counts: true }),
    ).toEqual({
      outcome: 'foreign_attempt',
    });
    expect(
      await fleet.runStates.finish(older.runId, older.leaseId, { status: 'failed', answer: 'other_owner' }),
    ).toBe('superseded');
    expect(await fleet.runStates.markLeaseLost(older.runId, older.leaseId)).toBe('superseded');
    expect(await fleet.runStates.requestCancel(older.runId, older.leaseId)).toBe('superseded');

    expect(await fleet.credentials.run(older.runId)).toMatchObject({ runToken: 'newer' });
    expect(await startOf(newer, 'new')).toEqual({
      outcome: 'started',
      attempt: 2,
      laneCursor: 7,
      restarts: 0,
    });
  });

  it('that arrives after a newer one changes nothing', async () => {
    const newer = someClaim({ leaseExpiresAtMs: 2_000 });
    const older = { ...newer, leaseId: 'lse_older', leaseExpiresAtMs: 1_000 };
    await fleet.runStates.recordClaim(newer);
    expect(await fleet.runStates.recordClaim(older)).toBe('stale');
    expect(await fleet.runStates.get(newer.runId)).toMatchObject({ leaseId: newer.leaseId });
    expect(await fleet.credentials.run(newer.runId)).toEqual(newer);
  });

  it('supersedes one whose lease is lost, whatever was granted to that', async () => {
    const lost = someClaim({ leaseExpiresAtMs: 2_000 });
    await fleet.runStates.recordClaim(lost);
    await fleet.runStates.markLeaseLost(lost.runId, lost.leaseId);
    const next = { ...lost, leaseId: 'lse_next', leaseExpiresAtMs: 1_000 };
    expect(await fleet.runStates.recordClaim(next)).toBe('recorded');
    expect(await startOf(next, 'one')).toMatchObject({ outcome: 'started' });
  });

  it('does not bring a finished run back, but a new claim of it does', async () => {
    const claim = await startedRun(fleet, 'one');
    await fleet.runStates.finish(claim.runId, claim.leaseId, { status: 'completed', answer: 'acknowledged' });
    expect(await fleet.runStates.recordClaim(claim)).toBe('done');
    expect(await fleet.credentials.run(claim.runId)).toBeNull();
    expect(await startOf(claim, 'two')).toEqual({ outcome: 'done' });

    const newer = { ...claim, leaseId: 'lse_next' };
    expect(await fleet.runStates.recordClaim(newer)).toBe('recorded');
    expect(await startOf(newer, 'three')).toMatchObject({ outcome: 'started', restarts: 0 });
    expect(await fleet.runStates.get(claim.runId)).toMatchObject({ status: null, doneAtMs: null, claims: 2 });
  });
});

describe('starting an attempt', () => {
  it('is refused for a run that nobody has recorded', async () => {
    expect(await startOf({ runId: 'run_nobody', leaseId: 'lse' }, 't')).toEqual({ outcome: 'unknown' });
  });

  it('counts starts, within a claim and over all, and hands on the highest cursor', async () => {
    const claim = await startedRun(fleet, 'one');
    await fleet.lanes.append(claim.runId, 'one', [{ cursor: 5_000_001, frame: 'row' }]);
    await fleet.lanes.trim(claim.runId, '5000001-0');
    expect(await startOf(claim, 'two')).toEqual({
      outcome: 'started',
      attempt: 2,
      laneCursor: 5_000_001,
      restarts: 1,
    });
  });

  it('with the same token again answers the same and counts nothing', async () => {
    const claim = someClaim();
    await fleet.runStates.recordClaim(claim);
    const first = await startOf(claim, 'one');
    await fleet.runStates.setRunning(claim.runId, 'one', 1);
    expect(await startOf(claim, 'one')).toEqual(first);
    expect(await fleet.runStates.get(claim.runId)).toMatchObject({ phase: 'running', attempt: 1 });
  });

  it('fences the attempt before it: of two that start at once one is left', async () => {
    const claim = someClaim();
    await fleet.runStates.recordClaim(claim);
    await Promise.all([startOf(claim, 'one'), startOf(claim, 'two')]);
    const writes = await Promise.all(
      ['one', 'two'].map((token) => fleet.lanes.append(claim.runId, token, [{ cursor: 1, frame: token }])),
    );
    expect(writes.map((write) => write.outcome).sort()).toEqual(['appended', 'foreign_attempt']);
  });

  it('is refused once the queue lock under which it was sent is gone (P12)', async () => {
    const claim = await startedRun(fleet, 'successor');
    const late = { queueName: 'runs.default', jobId: 'lease.x', lockToken: 'lapsed' };
    const answer = await fleet.runStates.startAttempt({
      ...claim,
      executorId: 'exe_2',
      attemptToken: 'late',
      lock: late,
    });
    expect(answer).toEqual({ outcome: 'superseded' });
    expect(await fleet.lanes.append(claim.runId, 'successor', [{ cursor: 1, frame: 'row' }])).toMatchObject({
      outcome: 'appended',
    });
  });

  it('finds a finalize in the lane and only lets it ship, also when the lease is lost', async () => {
    const claim = await startedRun(fleet, 'one');
    await fleet.lanes.appendFinalize(claim.runId, 'one', '{}');
    await fleet.runStates.markLeaseLost(claim.runId, claim.leaseId);
    expect(await startOf(claim, 'two')).toEqual({ outcome: 'finalizing' });
  });

  it('is refused when the lease is lost', async () => {
    const claim = someClaim();
    await fleet.runStates.recordClaim(claim);
    expect(await fleet.runStates.markLeaseLost(claim.runId, claim.leaseId)).toBe('marked');
    expect(await startOf(claim, 'one')).toEqual({ outcome: 'lease_lost' });
  });
});

describe('renewing', () => {
  const lock = { queue: 'runs.default', jobId: 'lease.r', lockToken: 'lock', lockMs: 5_000 };
  const lockKey = '{bwf:test}:runs.default:lease.r:lock';
  const renew = (runId: string, attemptToken: string) =>
    fleet.runStates.renewAttempt({ runId, attemptToken, ...lock });

  it('extends the lock of the queue and takes the job out of its stalled set', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    await redis.cli('SET', lockKey, 'lock', 'PX', '1000');
    await redis.cli('SADD', '{bwf:test}:runs.default:stalled', 'lease.r');
    expect(await renew(runId, 'mine')).toEqual({ outcome: 'renewed', cancelRequested: false });
    expect(await redis.cli('PTTL', lockKey)).toBeGreaterThan(4_000);
    expect(await redis.cli('SMEMBERS', '{bwf:test}:runs.default:stalled')).toEqual([]);
  });

  it('brings the word of a cancel along', async () => {
    const { runId, leaseId } = await startedRun(fleet, 'mine');
    await redis.cli('SET', lockKey, 'lock');
    expect(await fleet.runStates.requestCancel(runId, leaseId)).toBe('requested');
    expect(await renew(runId, 'mine')).toEqual({ outcome: 'renewed', cancelRequested: true });
  });

  it('is refused for every loss of ownership, and leaves the lock alone (P12)', async () => {
    const { runId, leaseId } = await startedRun(fleet, 'mine');
    await redis.cli('SET', lockKey, 'successor', 'PX', '1000');
    expect(await renew(runId, 'mine')).toEqual({ outcome: 'lock_lost' });
    await redis.cli('SET', lockKey, 'lock', 'PX', '1000');
    expect(await renew(runId, 'other')).toEqual({ outcome: 'foreign_attempt' });
    expect(await renew('run_nobody', 'mine')).toEqual({ outcome: 'superseded' });
    await fleet.runStates.markLeaseLost(runId, leaseId);
    expect(await renew(runId, 'mine')).toEqual({ outcome: 'lease_lost' });
    expect(await redis.cli('PTTL', lockKey)).toBeLessThanOrEqual(1_000);
  });

  it('goes on after a finalize, whatever becomes of the lease and of the run', async () => {
    const { runId, leaseId } = await startedRun(fleet, 'mine');
    await redis.cli('SET', lockKey, 'lock');
    await fleet.lanes.appendFinalize(runId, 'mine', '{}');
    await fleet.runStates.markLeaseLost(runId, leaseId);
    expect(await renew(runId, 'mine')).toMatchObject({ outcome: 'renewed' });
    await fleet.runStates.finish(runId, leaseId, { status: 'completed', answer: 'acknowledged' });
    expect(await renew(runId, 'mine')).toMatchObject({ outcome: 'renewed' });
  });
});

describe('the life of a run', () => {
  it('only moves on, whatever is resent', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    await fleet.lanes.appendFinalize(runId, 'mine', '{}');
    await fleet.runStates.setRunning(runId, 'mine', 10);
    expect(await fleet.runStates.get(runId)).toMatchObject({ phase: 'finishing', runningAtMs: null });
  });

  it('keeps the starts and ends of its attempts, the newest ten, and counts those that count', async () => {
    const claim = someClaim();
    await fleet.runStates.recordClaim(claim);
    for (let n = 1; n <= 12; n++) {
      await startOf(claim, `token ${n}`);
      const end = { endReason: 'sandbox_exit', evidence: `exit code ${n}`, counts: n > 2 };
      const ended = { outcome: 'recorded', counted: Math.max(0, n - 2) };
      expect(await fleet.runStates.endAttempt(claim.runId, `token ${n}`, end)).toEqual(ended);
      const again = { endReason: 'timeout', counts: true };
      expect(await fleet.runStates.endAttempt(claim.runId, `token ${n}`, again)).toEqual(ended);
    }
    const record = await fleet.runStates.get(claim.runId);
    expect(record?.attempts.map((each) => each.attempt)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    expect(record?.attempts.at(-1)).toMatchObject({
      executorId: 'exe_1',
      end: { reason: 'sandbox_exit', evidence: 'exit code 12' },
    });
  });

  it('waits again when an attempt ends without a finalize, and not after one', async () => {
    const { runId } = await startedRun(fleet, 'mine');
    await fleet.runStates.setRunning(runId, 'mine', 1);
    await fleet.runStates.endAttempt(runId, 'mine', { endReason: 'handed_back', counts: false });
    expect(await fleet.runStates.get(runId)).toMatchObject({ phase: 'queued' });

    const other = await startedRun(fleet, 'mine');
    await fleet.lanes.appendFinalize(other.runId, 'mine', '{}');
    await fleet.runStates.endAttempt(other.runId, 'mine', { endReason: 'cancelled', counts: false });
    expect(await fleet.runStates.get(other.runId)).toMatchObject({ phase: 'finishing' });
  });

  it('is told for many claims at once, and is over with whatever ends a claim', async () => {
    const [running, done, lost, superseded] = [
      await startedRun(fleet, 'mine'),
      await startedRun(fleet, 'mine'),
      await startedRun(fleet, 'mine'),
      await startedRun(fleet, 'mine'),
    ];
    await fleet.runStates.finish(done.runId, done.leaseId, { status: 'completed', answer: 'acknowledged' });
    await fleet.runStates.markLeaseLost(lost.runId, lost.leaseId);
    const unknown = { runId: 'run_nobody', leaseId: 'lse_nobody' };
    const older = { ...superseded, leaseId: 'lse_older' };
    const claims = [running, done, lost, older, unknown];
    expect(await fleet.runStates.claimPhases(claims)).toEqual(['starting', 'over', 'over', 'over', 'over']);
    expect(await fleet.runStates.claimPhases([])).toEqual([]);
  });

  it('ends with a tombstone for a day, and nothing else is left', async () => {
    const claim = await startedRun(fleet, 'mine');
    await fleet.lanes.append(claim.runId, 'mine', [{ cursor: 1, frame: 'row' }]);
    await fleet.lanes.appendFinalize(claim.runId, 'mine', '{}');
    const end = { status: 'completed', answer: 'acknowledged' } as const;
    expect(await fleet.runStates.finish(claim.runId, claim.leaseId, end)).toBe('finished');
    expect(await fleet.runStates.finish(claim.runId, claim.leaseId, end)).toBe('finished');

    const left = [...(await redis.dump()).keys()].filter((key) => key.endsWith(claim.runId));
    expect(left).toEqual([fleet.keys.run(claim.runId)]);
    expect(await redis.cli('PTTL', fleet.keys.run(claim.runId))).toBeGreaterThan(23 * 3_600_000);
    expect(await fleet.lanes.withWork(0, 1_000)).not.toContain(claim.runId);
    expect(await fleet.runStates.get(claim.runId)).toMatchObject({ phase: 'done', ...end });
  });
});

describe('nothing leaks', () => {
  it('every key of a claim ends by itself, in a day once its lease is lost', async () => {
    const claim = await startedRun(fleet, 'mine');
    await fleet.lanes.append(claim.runId, 'mine', [{ cursor: 1, frame: 'row' }]);
    const keys = [
      fleet.keys.run(claim.runId),
      fleet.keys.credential(claim.runId),
      fleet.keys.laneState(claim.runId),
      fleet.keys.lane(claim.runId),
    ];
    for (const key of keys) expect(await redis.cli('PTTL', key)).toBeGreaterThan(6 * 24 * 3_600_000);

    await fleet.runStates.markLeaseLost(claim.runId, claim.leaseId);
    await fleet.lanes.trim(claim.runId, '1-0');
    await fleet.lanes.append(claim.runId, 'mine', [{ cursor: 2, frame: 'a row that came late' }]);
    for (const key of keys) {
      const ttl = await redis.cli('PTTL', key);
      expect(ttl).toBeGreaterThan(0);
      expect(ttl).toBeLessThanOrEqual(24 * 3_600_000);
    }
  });

  it('a claim of the run that comes back keeps its lane', async () => {
    const claim = await startedRun(fleet, 'mine');
    await fleet.lanes.append(claim.runId, 'mine', [{ cursor: 1, frame: 'row' }]);
    await fleet.runStates.markLeaseLost(claim.runId, claim.leaseId);
    await fleet.runStates.recordClaim({
      ...claim,
      leaseId: 'lse_next',
      leaseExpiresAtMs: claim.leaseExpiresAtMs + 1,
    });
    expect(await redis.cli('PTTL', fleet.keys.lane(claim.runId))).toBeGreaterThan(6 * 24 * 3_600_000);
  });
});

describe('what stands in Redis', () => {
  it('carries the hash tag everywhere, and no secret in clear anywhere', async () => {
    const claim = someClaim({ env: { NOTE: 'clear-env-value' }, pool: 'a:b', leaseId: 'lse:1' });
    await fleet.credentials.putIdentity({
      runnerId: 'rnr_1',
      runnerToken: 'clear-runner-token',
      controlPlaneUrl: 'http://x',
      pool: 'a:b',
    });
    await fleet.runStates.recordClaim(claim);
    await fleet.runs.add(jobOf(claim));
    await startOf(claim, 'mine');
    await fleet.lanes.appendFinalize(
      claim.runId,
      'mine',
      JSON.stringify({ status: 'completed', output: 'clear-output' }),
    );
    await fleet.flushes.add(claim.runId);

    const dump = await redis.dump();
    for (const [key, text] of dump) {
      expect(key.startsWith('{bwf:test}:')).toBe(true);
      expect(text).not.toMatch(/clear-(run|api|runner)-token|clear-env-value|clear-output/);
    }
    expect(await fleet.credentials.identity('rnr_1')).toMatchObject({ runnerToken: 'clear-runner-token' });
    expect(await fleet.credentials.identity('rnr_nobody')).toBeNull();
  });

  it('does not open when a credential is put under another run', async () => {
    const [one, two] = [await startedRun(fleet, 'a'), await startedRun(fleet, 'b')];
    await redis.cli('COPY', fleet.keys.credential(one.runId), fleet.keys.credential(two.runId), 'REPLACE');
    await expect(fleet.credentials.run(two.runId)).rejects.toMatchObject({ code: 'SEAL_INVALID' });
  });
});
