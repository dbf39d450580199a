// What a holder may do with a job it has taken by hand. Losing the lock is an outcome here, not an error: the library
// throws for it.

import { ErrorCode, Job, type Worker } from 'bullmq';
import type { Redis } from 'ioredis';

/** Takes the job out of its queue; a job that is gone is completed, by us before an answer was lost or by a successor. */
export async function complete(job: Job, lockToken: string): Promise<'completed' | 'not_owner'> {
  try {
    await job.moveToCompleted(null, lockToken, false);
    return 'completed';
  } catch (error) {
    if (hasCode(error, ErrorCode.JobNotExist)) return 'completed';
    if (isNotOwner(error)) return 'not_owner';
    throw error;
  }
}

/** Puts the job back: at the front of its queue, or to be taken not before `delayMs` from now. */
export async function handBack(
  job: Job,
  lockToken: string,
  delayMs = 0,
): Promise<'handed_back' | 'not_owner'> {
  try {
    if (delayMs > 0) await job.moveToDelayed(Date.now() + delayMs, lockToken);
    else await job.moveToWait(lockToken);
    return 'handed_back';
  } catch (error) {
    if (hasCode(error, ErrorCode.JobNotExist) || isNotOwner(error)) return 'not_owner';
    throw error;
  }
}

/**
 * Puts back what a fetch with this lock token took beside the job that it brought. A fetch whose answer was lost with its
 * connection is sent again and takes another job, so the first one would wait for the end of its lock.
 *
 * @returns how many there were
 */
export async function handBackLost(
  worker: Worker,
  connection: Redis,
  lockToken: string,
  broughtId: string | undefined,
): Promise<number> {
  const active = await connection.lrange(worker.toKey('active'), 0, -1);
  const others = active.filter((id) => id !== broughtId);
  if (others.length === 0) return 0;
  const locks = await connection.mget(others.map((id) => `${worker.toKey(id)}:lock`));
  let lost = 0;
  for (const [index, id] of others.entries()) {
    if (locks[index] !== lockToken) continue;
    const job: Job | undefined = await Job.fromId(worker, id);
    if (job !== undefined && (await handBack(job, lockToken)) === 'handed_back') lost += 1;
  }
  return lost;
}

function isNotOwner(error: unknown): boolean {
  return [ErrorCode.JobLockNotExist, ErrorCode.JobLockMismatch, ErrorCode.JobNotInState].some((code) =>
    hasCode(error, code),
  );
}

function hasCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
