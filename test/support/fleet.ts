// A fleet on a test's own Redis, and the claims that a test puts into it.

import { randomUUID } from 'node:crypto';
import { pino, type Logger } from 'pino';
import { openFleet, type Fleet, type RunCredential, type RunJob } from '../../src/queue/fleet.js';
import { generateFleetKey, parseFleetKeys, type FleetKey } from '../../src/queue/seal.js';
import type { TestRedis } from './redis.js';

export const silent: Logger = pino({ level: 'silent' });

export async function openTestFleet(
  redis: TestRedis,
  options: { readonly keys?: readonly FleetKey[]; readonly name?: string } = {},
): Promise<Fleet> {
  return openFleet({
    name: options.name ?? 'test',
    redis: redis.settings,
    keys: options.keys ?? parseFleetKeys(generateFleetKey()),
    log: silent,
  });
}

export function someClaim(changes: Partial<RunCredential> = {}): RunCredential {
  const runId = changes.runId ?? `run_${randomUUID()}`;
  return {
    v: 1,
    runId,
    assignmentId: 'asg_1',
    leaseId: `lse_${runId}`,
    runnerId: 'rnr_1',
    workflowId: 'wf_1',
    environmentId: null,
    workspaceKey: null,
    pool: 'default',
    controlPlaneUrl: 'http://127.0.0.1:1',
    baseUrl: 'http://127.0.0.1:1/base',
    runToken: 'clear-run-token',
    apiToken: 'clear-api-token',
    workerId: 'rnr_1/asg_1',
    env: { REGION: 'north' },
    byoProviders: [],
    claimedAtMs: 1_700_000_000_000,
    leaseExpiresAtMs: 1_700_000_300_000,
    ...changes,
  };
}

export function jobOf(claim: RunCredential): RunJob {
  const { runId, leaseId, assignmentId, workflowId, pool, claimedAtMs } = claim;
  return { v: 1, runId, leaseId, assignmentId, workflowId, pool, claimedAtMs, queuedAtMs: claimedAtMs };
}

/** Records a claim and starts an attempt of it with this token. */
export async function startedRun(
  fleet: Fleet,
  attemptToken: string,
  changes: Partial<RunCredential> = {},
): Promise<RunCredential> {
  const claim = someClaim(changes);
  await fleet.runStates.recordClaim(claim);
  const started = await fleet.runStates.startAttempt({
    runId: claim.runId,
    leaseId: claim.leaseId,
    executorId: 'exe_1',
    attemptToken,
  });
  if (started.outcome !== 'started') throw new Error(`The attempt did not start: ${started.outcome}.`);
  return claim;
}
