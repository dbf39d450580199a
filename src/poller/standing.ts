// What the run record says about a claim, in the words that a heartbeat needs. Guards against beating for a run that
// nobody will execute any more: one that is done, given up, stepped back from or claimed anew. Its lease would keep
// the platform from giving the run to somebody else.
import type { HeartbeatPhase } from '../contract/pool.js';
import type { ClaimPhase, ClaimReference, RunStates } from '../queue/runState.js';

/** `over`: there is nothing left of this claim that a lease should cover. */
export type Standing = HeartbeatPhase | 'over';

const STANDINGS: Readonly<Record<ClaimPhase, Standing>> = {
  queued: 'preparing',
  starting: 'preparing',
  running: 'running',
  finishing: 'finalizing',
  over: 'over',
};

/** The standings of many claims, by lease id. */
export async function standingsOf(
  runStates: Pick<RunStates, 'claimPhases'>,
  claims: readonly ClaimReference[],
): Promise<ReadonlyMap<string, Standing>> {
  const phases = await runStates.claimPhases(claims);
  return new Map(phases.map((phase, index) => [claims[index]?.leaseId ?? '', STANDINGS[phase]]));
}
