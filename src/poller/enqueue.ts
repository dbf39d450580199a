// From a won claim to a job that any executor may take: checked, sealed into the run record, queued. Guards against
// claims lost between the platform and Redis (tried again while the lease lives) and against ids that would later be
// joined into paths (R13): such a run is let go, loudly and without a heartbeat, and the platform recovers it.
import type { Logger } from 'pino';
import { pathSegment, scopePath } from '../contract/ids.js';
import { OperatorError } from '../contract/operatorError.js';
import type { ClaimResponse } from '../contract/pool.js';
import { fullJitter, type Random } from '../platform/backoff.js';
import { controlPlaneBase } from '../platform/endpoints.js';
import type { RunCredential } from '../queue/credentials.js';
import type { RunJob, RunsQueue } from '../queue/runsQueue.js';
import type { RunStates } from '../queue/runState.js';
import { pause, waitFor } from '../waiting/waiting.js';
import { grantedMs } from './beatTiming.js';
import type { Identity } from './identity.js';

/** A claim that was won, with the clocks of the moment. */
export interface WonClaim {
  readonly assignmentId: string;
  readonly claim: ClaimResponse;
  readonly serverDateMs: number | null;
  /** Our wall clock, milliseconds since the epoch. */
  readonly claimedAtMs: number;
}

export interface EnqueueOptions {
  readonly fleet: {
    readonly runStates: Pick<RunStates, 'recordClaim'>;
    readonly runs: Pick<RunsQueue, 'add'>;
  };
  readonly identity: Identity;
  readonly log: Logger;
  readonly random: Random;
  /** Gives up at once. */
  readonly signal: AbortSignal;
}

/** Twice what the wire allows (`protocol/pool.md` 1); a job takes no more. */
const LONGEST_ID = 256;

const BACK_OFF = { baseMs: 250, ceilingMs: 5_000 };

/** Records the claim, then queues it. `let_go`: no heartbeat must follow. */
export async function enqueueClaim(won: WonClaim, options: EnqueueOptions): Promise<'enqueued' | 'let_go'> {
  const { claim, assignmentId } = won;
  const log = options.log.child({ runId: claim.run_id, leaseId: claim.lease_id });
  const problem = unusable(won);
  if (problem !== null) {
    log.error({ problem }, 'claim can not be executed here: left to the end of its lease');
    return 'let_go';
  }
  const leaseMs = grantedMs(claim.lease_expires_at, won.serverDateMs, won.claimedAtMs);
  const endsAt = performance.now() + leaseMs;
  const { runStates, runs } = options.fleet;
  const credential = credentialOf(won, options.identity);
  const trying = { ...options, log, endsAt };

  const recorded = await untilDone(() => runStates.recordClaim(credential), trying);
  if (recorded?.value === 'stale' || recorded?.value === 'done') {
    log.warn({ outcome: recorded.value }, 'claim is older than what the fleet knows of its run: let go');
    return 'let_go';
  }
  const job: RunJob = {
    v: 1,
    runId: claim.run_id,
    leaseId: claim.lease_id,
    assignmentId,
    workflowId: claim.workflow_id,
    pool: credential.pool,
    claimedAtMs: won.claimedAtMs,
    queuedAtMs: Date.now(),
  };
  const queued = recorded === null ? null : await untilDone(() => runs.add(job), trying);
  if (queued === null) {
    log.error('claim could not be queued while its lease lived: let go');
    return 'let_go';
  }
  log.info({ workflowId: claim.workflow_id }, 'run claimed and queued');
  return 'enqueued';
}

/** Tries until it works; null when the lease was over or the signal fell first. Both steps are safe to repeat. */
async function untilDone<T>(
  step: () => Promise<T>,
  options: {
    readonly endsAt: number;
    readonly log: Logger;
    readonly random: Random;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly value: T } | null> {
  for (let failures = 1; ; failures++) {
    const left = options.endsAt - performance.now();
    if (left <= 0 || options.signal.aborted) return null;
    try {
      const tried = await waitFor(step(), { ms: left, signal: options.signal });
      return tried.outcome === 'settled' ? { value: tried.value } : null;
    } catch (error) {
      options.log.warn({ err: error, failures }, 'claim not queued, trying again');
    }
    await pause(
      Math.min(left, fullJitter(failures, { ...BACK_OFF, random: options.random })),
      options.signal,
    );
  }
}

/** Why a claim can't be executed by anyone of this fleet; null when it can. */
function unusable({ claim, assignmentId }: WonClaim): string | null {
  if (claim.lease_id.length > LONGEST_ID || assignmentId.length > LONGEST_ID)
    return 'an id is too long for a job';
  try {
    pathSegment(claim.run_id);
    scopePath({
      workflowId: claim.workflow_id,
      environmentId: claim.environment_id,
      workspaceKey: claim.workspace_key,
    });
    controlPlaneBase(claim.control_plane.base_url);
    return null;
  } catch (error) {
    if (error instanceof OperatorError) return error.message;
    throw error;
  }
}

function credentialOf(won: WonClaim, identity: Identity): RunCredential {
  const { claim, assignmentId } = won;
  return {
    v: 1,
    runId: claim.run_id,
    assignmentId,
    leaseId: claim.lease_id,
    runnerId: identity.runnerId,
    workflowId: claim.workflow_id,
    environmentId: claim.environment_id,
    workspaceKey: claim.workspace_key,
    pool: identity.pool,
    controlPlaneUrl: identity.controlPlaneUrl,
    baseUrl: claim.control_plane.base_url,
    runToken: claim.control_plane.run_token,
    apiToken: claim.control_plane.api_token,
    // Stable over our attempts, so that a successor takes the run lease over (design section 6).
    workerId: `${identity.runnerId}/${assignmentId}`,
    env: claim.env,
    byoProviders: claim.byo_providers,
    claimedAtMs: won.claimedAtMs,
    leaseExpiresAtMs: claim.lease_expires_at,
  };
}
