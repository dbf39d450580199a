// What a holder may do with a job it has taken by hand. Losing the lock is an outcome here, not an error: the library
// throws for it.

import { ErrorCode, type Job } from 'bullmq';

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

/** Puts the job back at the front of its queue. */
export async function handBack(job: Job, lockToken: string): Promise<'handed_back' | 'not_owner'> {
  try {
    await job.moveToWait(lockToken);
    return 'handed_back';
  } catch (error) {
    if (hasCode(error, ErrorCode.JobNotExist) || isNotOwner(error)) return 'not_owner';
    throw error;
  }
}

function isNotOwner(error: unknown): boolean {
  return [ErrorCode.JobLockNotExist, ErrorCode.JobLockMismatch, ErrorCode.JobNotInState].some((code) =>
    hasCode(error, code),
  );
}

function hasCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Waits for work that may never end, but no longer than this; its error is nobody's any more. */
export async function settleWithin(
  work: Promise<unknown>,
  timeoutMs: number,
): Promise<'settled' | 'timed_out'> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<'timed_out'>((resolve) => {
    timer = setTimeout(() => resolve('timed_out'), timeoutMs);
  });
  const settled = work.then(
    () => 'settled' as const,
    () => 'settled' as const,
  );
  try {
    return await Promise.race([settled, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
