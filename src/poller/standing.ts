// What the run record says about a claim, in the words that a heartbeat needs. Guards against beating for a run that
// nobody will execute any more: one that is done, given up, stepped back from or claimed anew. Its lease would keep
// the platform from giving the run to somebody else.
import type { HeartbeatPhase } from '../platform/poolClient.js';
import type { RunPhase, RunRecord, RunStates } from '../queue/runState.js';

/** `over`: there is nothing left of this claim that a lease should cover. */
export type Standing = HeartbeatPhase | 'over';

export interface LeaseReference {
  readonly runId: string;
  readonly leaseId: string;
}

const STANDINGS: Readonly<Record<RunPhase, Standing>> = {
  queued: 'preparing',
  starting: 'preparing',
  running: 'running',
  finishing: 'finalizing',
  done: 'over',
};

/** Where a claim stands, from its run's record; null = Redis knows of no such run. */
export function standingOf(leaseId: string, record: RunRecord | null): Standing {
  if (record?.leaseId !== leaseId || record.leaseLostAtMs !== null) return 'over';
  return STANDINGS[record.phase];
}

/** The standings of many claims, by lease id; one whose record can't be had just now is left out. */
export async function standingsOf(
  runStates: Pick<RunStates, 'get'>,
  leases: readonly LeaseReference[],
): Promise<ReadonlyMap<string, Standing>> {
  const records = await Promise.allSettled(leases.map(({ runId }) => runStates.get(runId)));
  const standings = new Map<string, Standing>();
  leases.forEach(({ leaseId }, index) => {
    const record = records[index];
    if (record?.status === 'fulfilled') standings.set(leaseId, standingOf(leaseId, record.value));
  });
  return standings;
}
