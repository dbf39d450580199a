// What a runner's identity and the control plane say to each other (protocol/pool.md): register, poll, claim, heartbeat.
// The schemas are exact, for what is sent and for the control plane of `dev`; the readers are tolerant, because an
// answer to a claim that can't be read strands a run until its lease expires (R10, R25). Names are the wire's.

import { z } from 'zod';
import { parseLenient, parseWire } from './lenient.js';
import { isRecord } from './json.js';
import { MAX_ID_CHARS } from './ids.js';

/** Opaque, 1 to 128 characters; not yet fit for a path (`ids.ts`). */
export const idSchema = z.string().min(1).max(MAX_ID_CHARS);

const name = z.string().min(1).max(120);
const credential = z.string().min(1);
const millis = z.int().min(0);
const version = z.string().min(1).max(64);

/** Body of poll and claim. */
export const declarationSchema = z.strictObject({
  contract_version: z.int().min(1),
  runner_version: version,
});

export const registerRequestSchema = z.strictObject({
  registration_token: credential,
  name,
  labels: z.array(name).max(32).default([]),
  os: z.enum(['linux', 'macos', 'windows']).optional(),
  arch: z.enum(['x64', 'arm64']).optional(),
  runner_version: version.optional(),
});

export const registerResponseSchema = z.strictObject({
  runner_id: idSchema,
  pool: name,
  runner_token: credential,
  poll: z.strictObject({ url: z.url(), interval_seconds: z.int().min(1).max(300) }),
});

/** A pool with labels, or the label of a hosted machine. */
export const runsOnSchema = z.union([
  z.strictObject({ kind: z.literal('self-hosted'), pool: name, labels: z.array(name).optional() }),
  name,
]);

export const offerSchema = z.strictObject({
  assignment_id: idSchema,
  run_id: idSchema,
  org_id: idSchema,
  runs_on: runsOnSchema,
  queued_at: millis,
});

export const pollResponseSchema = z.strictObject({
  assignment: offerSchema.nullable(),
  action: z.literal('drain').optional(),
});

export const byoProviderSchema = z.strictObject({
  name,
  source: version,
  base_url: z.string().nullable(),
  auth_secret_name: z.string().nullable(),
});

export const claimResponseSchema = z.strictObject({
  lease_id: idSchema,
  run_id: idSchema,
  workflow_id: idSchema,
  environment_id: idSchema.nullable(),
  workspace_key: z.string().nullable(),
  lease_expires_at: millis,
  control_plane: z.strictObject({ base_url: z.url(), run_token: credential, api_token: credential }),
  env: z.record(z.string(), z.string()),
  byo_providers: z.array(byoProviderSchema),
});

export const heartbeatRequestSchema = z.strictObject({
  lease_id: idSchema,
  run_id: idSchema,
  phase: z.enum(['preparing', 'running', 'finalizing']),
});

export const heartbeatResponseSchema = z.strictObject({
  lease_expires_at: millis,
  action: z.enum(['continue', 'cancel', 'drain']),
});

export type RegisterRequest = z.infer<typeof registerRequestSchema>;
export type RegisterResponse = z.infer<typeof registerResponseSchema>;
export type Offer = z.infer<typeof offerSchema>;
export type PollResponse = z.infer<typeof pollResponseSchema>;
export type ByoProvider = z.infer<typeof byoProviderSchema>;
export type ClaimResponse = z.infer<typeof claimResponseSchema>;
export type HeartbeatRequest = z.infer<typeof heartbeatRequestSchema>;
/** What the run does, in the heartbeat's words (protocol/pool.md 7). */
export type HeartbeatPhase = HeartbeatRequest['phase'];
export type HeartbeatResponse = z.infer<typeof heartbeatResponseSchema>;

/** Unknown keys are dropped. @throws WireError */
export function readRegisterResponse(body: unknown): RegisterResponse {
  return parseWire('register response', registerResponseSchema, body);
}

/** Unknown keys are dropped; an action other than `drain` counts as none. @throws WireError */
export function readPollResponse(body: unknown): PollResponse {
  const known = isRecord(body) && body['action'] !== 'drain' ? { ...body, action: undefined } : body;
  return parseWire('poll response', pollResponseSchema, known);
}

/**
 * Unknown keys are dropped, a missing `workspace_key` is null (runners of generation 0.2 get none), and of the
 * providers only entries that can't be used are left out: calls that name one of those are brokered.
 *
 * @throws WireError
 */
export function readClaimResponse(body: unknown): ClaimResponse {
  if (!isRecord(body)) return parseWire('claim response', claimResponseSchema, body);
  const { workspace_key = null, byo_providers } = body;
  return parseWire('claim response', claimResponseSchema, {
    ...body,
    workspace_key,
    byo_providers: readByoProviders(byo_providers),
  });
}

/** Unknown keys are dropped; an unknown action is `continue`: never stop a run by mistake. @throws WireError */
export function readHeartbeatResponse(body: unknown): HeartbeatResponse {
  if (!isRecord(body)) return parseWire('heartbeat response', heartbeatResponseSchema, body);
  const action = heartbeatResponseSchema.shape.action.safeParse(body['action']).data ?? 'continue';
  return parseWire('heartbeat response', heartbeatResponseSchema, { ...body, action });
}

/** The entries that can be used, of a claim's registry or of an answer of `inference/providers`. */
function readByoProviders(value: unknown): ByoProvider[] {
  if (!Array.isArray(value)) return [];
  return value.map((entry) => parseLenient(byoProviderSchema, entry)).filter((entry) => entry !== null);
}
