// The two sealed records of design section 4: what a registered runner is, and what a claim may speak with. Sealed
// under their owner's name, so that neither can be read from a copy of Redis nor be passed off as another's.
// A run's credential is written together with its record (runStates.recordClaim), never alone.

import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { FleetKeys } from './keys.js';
import type { Sealer } from './seal.js';
import { parseStored } from './stored.js';

const identityRecord = z.object({
  runnerId: z.string(),
  runnerToken: z.string(),
  controlPlaneUrl: z.string(),
  pool: z.string(),
});

/** One registered runner, so that any process of the fleet can beat its leases. */
export type IdentityRecord = Readonly<z.infer<typeof identityRecord>>;

const runCredential = z.object({
  v: z.literal(1),
  runId: z.string(),
  assignmentId: z.string(),
  leaseId: z.string(),
  runnerId: z.string(),
  workflowId: z.string(),
  environmentId: z.string().nullable(),
  workspaceKey: z.string().nullable(),
  pool: z.string(),
  /** Origin of the pool API, where heartbeats go. */
  controlPlaneUrl: z.string(),
  /** Base of the run-control API, as the claim named it. */
  baseUrl: z.string(),
  runToken: z.string(),
  apiToken: z.string(),
  /** `<runner id>/<assignment id>`: stable over our attempts, so that a successor takes over at once. */
  workerId: z.string(),
  env: z.record(z.string(), z.string()),
  byoProviders: z.array(z.unknown()),
  claimedAtMs: z.number(),
  /** As the claim's answer said, by the platform's clock. */
  leaseExpiresAtMs: z.number(),
});

/** Everything that acting for one claim needs. */
export type RunCredential = Readonly<z.infer<typeof runCredential>>;

export class Credentials {
  readonly #redis: Redis;
  readonly #keys: FleetKeys;
  readonly #sealer: Sealer;

  constructor(redis: Redis, keys: FleetKeys, sealer: Sealer) {
    this.#redis = redis;
    this.#keys = keys;
    this.#sealer = sealer;
  }

  async putIdentity(record: IdentityRecord): Promise<void> {
    const sealed = this.#sealer.seal(
      `identity:${record.runnerId}`,
      JSON.stringify(identityRecord.parse(record)),
    );
    await this.#redis.set(this.#keys.identity(record.runnerId), sealed);
  }

  /** @throws SealError, RecordError */
  async identity(runnerId: string): Promise<IdentityRecord | null> {
    return this.#read(this.#keys.identity(runnerId), `identity:${runnerId}`, identityRecord);
  }

  /** The credential of the run's newest claim; null when the run is unknown, done or given up. @throws SealError, RecordError */
  async run(runId: string): Promise<RunCredential | null> {
    return this.#read(this.#keys.credential(runId), credentialOwner(runId), runCredential);
  }

  async #read<T>(key: string, owner: string, schema: z.ZodType<T>): Promise<T | null> {
    const sealed = await this.#redis.get(key);
    if (sealed === null) return null;
    return parseStored(schema, this.#sealer.open(owner, sealed), `The record ${owner}`);
  }
}

export function sealCredential(sealer: Sealer, credential: RunCredential): string {
  return sealer.seal(credentialOwner(credential.runId), JSON.stringify(runCredential.parse(credential)));
}

function credentialOwner(runId: string): string {
  return `cred:${runId}`;
}
