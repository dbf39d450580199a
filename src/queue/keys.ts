// The names of everything that a fleet keeps in Redis. All carry one hash tag, so that a script that touches several
// of them works on a cluster (P5), and fleets that share a Redis can't meet.
// Ids from the wire come last in a key, whole: nothing follows them that they could imitate.

import { createHash } from 'node:crypto';
import { OperatorError } from '../contract/operatorError.js';

const FLEET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const PLAIN_NAME = /^[A-Za-z0-9._-]{1,64}$/;

export class FleetKeys {
  /** Prefix of all keys, ours and the queue library's: `{bwf:<fleet>}`. */
  readonly prefix: string;
  /** Sorted set: runs whose lane has entries, by the time (ms, Redis' clock) of the lane's last event. */
  readonly lanes: string;
  /** Set of executor ids; the records themselves end by their time to live. */
  readonly executors: string;
  /** String: sealed with the fleet's key, to tell a process that has another. */
  readonly keyCheck: string;
  /** Name of the queue of flush jobs. */
  readonly eventsQueue = 'flush';

  /** @throws OperatorError `FLEET_NAME_INVALID` */
  constructor(fleet: string) {
    if (!FLEET_NAME.test(fleet)) {
      throw new OperatorError(
        'FLEET_NAME_INVALID',
        `The fleet name ${JSON.stringify(fleet)} can't be used.`,
        {
          hint: 'Use up to 64 letters, digits, dots, dashes and underscores, starting with a letter or a digit.',
        },
      );
    }
    this.prefix = `{bwf:${fleet}}`;
    this.lanes = `${this.prefix}:lanes`;
    this.executors = `${this.prefix}:executors`;
    this.keyCheck = `${this.prefix}:key-check`;
  }

  /** Hash: the run record. */
  run(runId: string): string {
    return `${this.prefix}:run:${runId}`;
  }

  /** Stream: the run's unshipped entries. */
  lane(runId: string): string {
    return `${this.prefix}:lane:${runId}`;
  }

  /** Hash: attempt token, highest cursor and sums of the run's lane. */
  laneState(runId: string): string {
    return `${this.prefix}:lane-state:${runId}`;
  }

  /** Hash by cursor: rows of the run that the platform refuses, with the answer that each got. */
  deadLetters(runId: string): string {
    return `${this.prefix}:dead:${runId}`;
  }

  /** String: the sealed credential of the run's current claim. */
  credential(runId: string): string {
    return `${this.prefix}:cred:${runId}`;
  }

  /** String: the sealed record of one registered runner. */
  identity(runnerId: string): string {
    return `${this.prefix}:identity:${runnerId}`;
  }

  /** String with a time to live: what one executor says about itself. */
  executor(executorId: string): string {
    return `${this.prefix}:executor:${executorId}`;
  }

  /** Name of the queue of claimed runs of a pool; pools that the queue library would refuse are hashed. */
  runsQueue(pool: string): string {
    return plainOrHashed('runs', pool);
  }

  /** Id of a claim's job, the same whoever adds it: a resent add must not make a second job. */
  runJobId(leaseId: string): string {
    return plainOrHashed('lease', leaseId);
  }

  /** Keys that the queue library uses for the lock of a job and for its stalled set. */
  jobLock(queueName: string, jobId: string): string {
    return `${this.prefix}:${queueName}:${jobId}:lock`;
  }

  stalledJobs(queueName: string): string {
    return `${this.prefix}:${queueName}:stalled`;
  }
}

// Plain and hashed names differ in the character after the word, so that no plain one can equal a hashed one.
function plainOrHashed(word: string, name: string): string {
  if (PLAIN_NAME.test(name)) return `${word}.${name}`;
  return `${word}~${createHash('sha256').update(name).digest('base64url').slice(0, 32)}`;
}
