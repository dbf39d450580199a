// In whose name a lane is shipped, and what it means when that name is refused. It guards against two opposites: a lane
// that is tried for ever with a token that will never be good again, and one that is given up although its run has just
// been claimed anew and the new attempt has not taken the run lease yet.

import type { PlatformHttp } from '../platform/http.js';
import { RunClient } from '../platform/runClient.js';
import type { Fleet, RunCredential } from '../queue/fleet.js';

export interface RunAccess {
  readonly credential: RunCredential;
  readonly client: RunClient;
}

/** As of the run's newest claim; null when the run is unknown, done or given up. @throws SealError, RecordError */
export async function openAccess(
  fleet: Pick<Fleet, 'credentials'>,
  http: PlatformHttp,
  runId: string,
): Promise<RunAccess | null> {
  const credential = await fleet.credentials.run(runId);
  return credential === null ? null : { credential, client: new RunClient(http, credential) };
}

export function isSameAccess(a: RunAccess, b: RunAccess): boolean {
  return a.credential.leaseId === b.credential.leaseId && a.credential.runToken === b.credential.runToken;
}

export type RunHold =
  /** An attempt under this claim has taken the run lease, or had the chance to. */
  | 'held'
  /** The claim waits for its attempt, which will take the run lease. */
  | 'awaited'
  /** The claim has found the finalize of an earlier one in the lane: no attempt will start, nobody takes the lease. */
  | 'nobody'
  /** The platform has taken the run from this claim. */
  | 'lost'
  /** The run's record speaks of another claim, or of none. */
  | 'other';

/** Who holds the run lease under a claim, as the run's record tells. */
export async function runHold(
  fleet: Pick<Fleet, 'runStates' | 'lanes'>,
  runId: string,
  leaseId: string,
): Promise<RunHold> {
  const record = await fleet.runStates.get(runId);
  if (record?.leaseId !== leaseId || record.phase === 'done') return 'other';
  if (record.leaseLostAtMs !== null) return 'lost';
  if (record.phase !== 'queued' && record.phase !== 'starting') return 'held';
  return (await fleet.lanes.isFinalized(runId)) ? 'nobody' : 'awaited';
}
