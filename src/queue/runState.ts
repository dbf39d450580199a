// The life of a run, in one Redis hash. Every step that decides something is one script, and every write of an attempt
// carries its token: a client resends queued commands after a reconnect, so a write may arrive long after its sender
// lost the right to it (P12). Whoever holds the newest token owns the run; nobody else can touch it.

import type { Redis } from 'ioredis';
import { z } from 'zod';
import { sealCredential, type RunCredential } from './credentials.js';
import type { FleetKeys } from './keys.js';
import {
  CLAIM_TTL_MS,
  EVIDENCE_CHARACTERS,
  KEPT_ATTEMPTS,
  LEFTOVER_TTL_MS,
  TOMBSTONE_TTL_MS,
} from './retention.js';
import { readPhase, readRunRecord, type RunPhase, type RunRecord } from './runRecord.js';
import type { Sealer } from './seal.js';
import { readStored } from './stored.js';

export type { AttemptRecord, RunPhase, RunRecord } from './runRecord.js';

export type RecordOutcome = 'recorded' | 'repeated' | 'done' | 'stale';

export type StartOutcome =
  | {
      readonly outcome: 'started';
      /** Number of this start among all of ours of the run, from 1. */
      readonly attempt: number;
      /** Highest cursor that ever was in the lane; 0 = none. */
      readonly laneCursor: number;
      /** Starts of this claim before this one. */
      readonly restarts: number;
    }
  /** Another claim is the run's now, or the queue's lock is another's: complete the job and leave it. */
  | { readonly outcome: 'superseded' }
  /** The lane has its finalize: only let it ship. */
  | { readonly outcome: 'finalizing' }
  | { readonly outcome: 'done' }
  | { readonly outcome: 'lease_lost' }
  | { readonly outcome: 'unknown' };

export type RenewOutcome =
  | { readonly outcome: 'renewed'; readonly cancelRequested: boolean }
  | { readonly outcome: 'lock_lost' | 'superseded' | 'lease_lost' | 'foreign_attempt' };

export type EndOutcome =
  /** `counted`: ends of this claim so far that count. */
  { readonly outcome: 'recorded'; readonly counted: number } | { readonly outcome: 'foreign_attempt' };

/** One claim of a run. */
export interface ClaimReference {
  readonly runId: string;
  readonly leaseId: string;
}

/** The run's phase while anything of the claim is left; `over`: done, given up, lost, or superseded by a newer claim. */
export type ClaimPhase = Exclude<RunPhase, 'done'> | 'over';

const recordReply = z.enum(['recorded', 'repeated', 'done', 'stale']);
const startReply = z.union([
  z.tuple([z.literal('started'), z.int(), z.string(), z.int()]),
  z.tuple([z.enum(['unknown', 'superseded', 'done', 'finalizing', 'lease_lost'])]),
]);
const renewReply = z.union([
  z.tuple([z.literal('renewed'), z.int()]),
  z.tuple([z.enum(['superseded', 'foreign_attempt', 'lease_lost', 'lock_lost'])]),
]);
const setReply = z.enum(['set', 'foreign_attempt']);
const endReply = z.union([
  z.tuple([z.literal('recorded'), z.int()]),
  z.tuple([z.literal('foreign_attempt')]),
]);
const leaseLostReply = z.enum(['marked', 'superseded', 'done']);
const cancelReply = z.enum(['requested', 'superseded', 'done']);
const claimReply = z.tuple([z.string().nullable(), z.string().nullable(), z.string().nullable()]);
const finishReply = z.enum(['finished', 'superseded']);

export class RunStates {
  readonly #redis: Redis;
  readonly #keys: FleetKeys;
  readonly #sealer: Sealer;

  constructor(redis: Redis, keys: FleetKeys, sealer: Sealer) {
    this.#redis = redis;
    this.#keys = keys;
    this.#sealer = sealer;
  }

  /**
   * Records a claim and its sealed credential. A newer claim of a run supersedes the older one, whose attempts can't
   * write any more; claims of one run are ordered by the lease expiry that the platform gave them. May be repeated.
   */
  async recordClaim(credential: RunCredential): Promise<RecordOutcome> {
    const { runId, leaseId, assignmentId, runnerId, workflowId, pool, claimedAtMs, leaseExpiresAtMs } =
      credential;
    const keys = this.#keys;
    const reply = await this.#redis.bwfRecordClaim(
      ...[keys.run(runId), keys.credential(runId), keys.lane(runId), keys.laneState(runId)],
      ...[leaseId, leaseExpiresAtMs, sealCredential(this.#sealer, credential), CLAIM_TTL_MS],
      ...['assignmentId', assignmentId, 'runnerId', runnerId, 'workflowId', workflowId],
      ...['pool', pool, 'claimedAtMs', claimedAtMs],
    );
    return readStored(recordReply, reply, 'The answer of recordClaim');
  }

  /**
   * Starts an attempt. Repeated with the same token (an answer was lost) it answers the same and counts nothing.
   *
   * @param start `lock`: the queue's lock under which it starts. With it, a start that arrives after the lock has gone
   *   to a successor is refused instead of fencing that successor.
   */
  async startAttempt(start: {
    readonly runId: string;
    readonly leaseId: string;
    readonly executorId: string;
    readonly attemptToken: string;
    readonly lock?: { readonly queueName: string; readonly jobId: string; readonly lockToken: string };
  }): Promise<StartOutcome> {
    const { runId, leaseId, executorId, attemptToken, lock } = start;
    const keys = this.#keys;
    const lockKey = lock === undefined ? keys.run(runId) : keys.jobLock(lock.queueName, lock.jobId);
    const reply = await this.#redis.bwfStartAttempt(
      ...[keys.run(runId), keys.laneState(runId), keys.credential(runId), lockKey],
      ...[leaseId, executorId, attemptToken, CLAIM_TTL_MS, lock?.lockToken ?? '', KEPT_ATTEMPTS],
    );
    const read = readStored(startReply, reply, 'The answer of startAttempt');
    if (read[0] !== 'started') return { outcome: read[0] };
    return { outcome: 'started', attempt: read[1], laneCursor: Number(read[2]), restarts: read[3] };
  }

  /**
   * Extends the queue's lock of the attempt's job, if lock and run are both still this attempt's.
   *
   * @param renewal `queue` is the queue's name, `lockMs` counts from when Redis executes this.
   */
  async renewAttempt(renewal: {
    readonly runId: string;
    readonly attemptToken: string;
    readonly queue: string;
    readonly jobId: string;
    readonly lockToken: string;
    readonly lockMs: number;
  }): Promise<RenewOutcome> {
    const { runId, attemptToken, queue, jobId, lockToken, lockMs } = renewal;
    const keys = this.#keys;
    const reply = await this.#redis.bwfRenewAttempt(
      ...[keys.run(runId), keys.laneState(runId), keys.credential(runId)],
      ...[keys.jobLock(queue, jobId), keys.stalledJobs(queue)],
      ...[attemptToken, lockToken, lockMs, jobId, CLAIM_TTL_MS],
    );
    const read = readStored(renewReply, reply, 'The answer of renewAttempt');
    return read[0] === 'renewed'
      ? { outcome: 'renewed', cancelRequested: read[1] === 1 }
      : { outcome: read[0] };
  }

  /** Moves a run that starts on to `running`; never back. `atMs` is the caller's time of the event. */
  async setRunning(runId: string, attemptToken: string, atMs: number): Promise<'set' | 'foreign_attempt'> {
    const reply = await this.#redis.bwfSetRunning(this.#keys.run(runId), attemptToken, atMs);
    return readStored(setReply, reply, 'The answer of setRunning');
  }

  /**
   * Notes how an attempt ended; the first word about it stays. Without a finalize the run counts as queued again.
   *
   * @param end `counts`: whether the end is the run's own doing, and so one of those that it may have.
   */
  async endAttempt(
    runId: string,
    attemptToken: string,
    end: { readonly endReason: string; readonly evidence?: string; readonly counts: boolean },
  ): Promise<EndOutcome> {
    const reply = await this.#redis.bwfEndAttempt(
      ...[this.#keys.run(runId), this.#keys.laneState(runId)],
      ...[
        attemptToken,
        end.endReason,
        (end.evidence ?? '').slice(0, EVIDENCE_CHARACTERS),
        end.counts ? 1 : 0,
      ],
    );
    const read = readStored(endReply, reply, 'The answer of endAttempt');
    return read[0] === 'recorded'
      ? { outcome: 'recorded', counted: read[1] }
      : { outcome: 'foreign_attempt' };
  }

  /** The platform has said that this claim is no longer ours. Its attempt learns of it with its next renewal. */
  async markLeaseLost(runId: string, leaseId: string): Promise<'marked' | 'superseded' | 'done'> {
    const keys = this.#keys;
    const reply = await this.#redis.bwfMarkLeaseLost(
      ...[keys.run(runId), keys.credential(runId), keys.lane(runId), keys.laneState(runId)],
      ...[leaseId, LEFTOVER_TTL_MS],
    );
    return readStored(leaseLostReply, reply, 'The answer of markLeaseLost');
  }

  /** A stop is wanted. Its attempt learns of it with its next renewal. */
  async requestCancel(runId: string, leaseId: string): Promise<'requested' | 'superseded' | 'done'> {
    const reply = await this.#redis.bwfRequestCancel(this.#keys.run(runId), leaseId);
    return readStored(cancelReply, reply, 'The answer of requestCancel');
  }

  /**
   * Ends a claim for good: a tombstone stays for a day; credential, lane and what is in it go. Only the run's current
   * claim can be ended; `superseded` means that nothing was done.
   *
   * @param end `answer`: what the platform said to the finalize, e.g. `acknowledged` or `other_owner`.
   */
  async finish(
    runId: string,
    leaseId: string,
    end: { readonly status: 'completed' | 'failed'; readonly answer: string },
  ): Promise<'finished' | 'superseded'> {
    const keys = this.#keys;
    const reply = await this.#redis.bwfFinish(
      ...[keys.run(runId), keys.credential(runId), keys.lane(runId), keys.laneState(runId), keys.lanes],
      ...[leaseId, end.status, end.answer, TOMBSTONE_TTL_MS, runId],
    );
    return readStored(finishReply, reply, 'The answer of finish');
  }

  /** @throws RecordError */
  async get(runId: string): Promise<RunRecord | null> {
    const fields = await this.#redis.hgetall(this.#keys.run(runId));
    return Object.keys(fields).length === 0 ? null : readRunRecord(runId, fields);
  }

  /** Where many claims stand, in their order and in one round trip. @throws RecordError */
  async claimPhases(claims: readonly ClaimReference[]): Promise<readonly ClaimPhase[]> {
    if (claims.length === 0) return [];
    const pipeline = this.#redis.pipeline();
    for (const { runId } of claims)
      pipeline.hmget(this.#keys.run(runId), 'leaseId', 'phase', 'leaseLostAtMs');
    const replies = (await pipeline.exec()) ?? [];
    return claims.map(({ leaseId }, index) => {
      const [error, fields] = replies[index] ?? [
        new Error('Redis answered for fewer runs than it was asked.'),
      ];
      if (error !== null) throw error;
      const [current, phase, lostAt] = readStored(claimReply, fields, 'The answer of claimPhases');
      if (current !== leaseId || phase === null || lostAt !== null) return 'over';
      const read = readPhase(phase);
      return read === 'done' ? 'over' : read;
    });
  }
}
