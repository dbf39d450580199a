// What a run says to the control plane (protocol/run-control.md): request bodies as schemas, for the gateway and for the
// control plane of `dev`. A server accepts keys that it doesn't know, so they are dropped and not refused. The answers
// are read in `runAnswers.ts`, without a validation library; both halves are exported from here.

import { z } from 'zod';

export {
  effectiveInput,
  readCancel,
  readCredit,
  readRenew,
  readRunClaim,
  readSecret,
  readVersion,
  type Actor,
  type RunClaim,
  type RunEnvironment,
  type RunRow,
  type RunVersion,
  type TriggerKind,
  type TriggerRequest,
} from './runAnswers.js';

const text = z.string().min(1);

/** Error of a run, of a call, of an event. `code` is SCREAMING_SNAKE or the name of the program's error. */
export interface RunError {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
}

/** Body of `claim` and `renew`. */
export const runClaimRequestSchema = z.object({ workerId: text, leaseSeconds: z.int().min(1) });
export const renewRequestSchema = runClaimRequestSchema;

export interface FinalizeBody {
  readonly status: 'completed' | 'failed';
  /** What the program returned, unredacted; `{error: RunError}` when it failed. */
  readonly output: unknown;
  readonly workerId: string;
}

/** An absent output is null. */
export const finalizeRequestSchema = z.object({
  status: z.enum(['completed', 'failed']),
  output: z.unknown().default(null),
  workerId: text,
});

/** Each frame is a JSON text of one row (`EventRow`). */
export const telemetryRequestSchema = z.object({ frames: z.array(z.string()) });

/** `runtimeSeconds` is a delta; a repeated identifier counts once, with the larger value. */
export const usageRequestSchema = z.object({ runtimeSeconds: z.int().min(1), identifier: text });

const tokens = z.int().min(0);
export const tokenUsageRequestSchema = z.object({
  inputTokens: tokens,
  outputTokens: tokens,
  model: z.string().optional(),
  identifier: text,
  cachedReadTokens: tokens.optional(),
  cachedWriteTokens: tokens.optional(),
});

export const secretRequestSchema = z.object({ name: text });

/** Messages and tools are passed on unchecked (protocol/inference.md 1). A reasoning that is no object is dropped. */
export const inferenceRequestSchema = z.object({
  model: z.string().optional(),
  provider: z.string().optional(),
  messages: z.array(z.unknown()),
  tools: z.array(z.unknown()),
  reasoning: z.record(z.string(), z.unknown()).optional().catch(undefined),
  desktopSession: z.literal(true).optional().catch(undefined),
});

export type RunClaimRequest = z.infer<typeof runClaimRequestSchema>;
export type InferenceRequest = z.infer<typeof inferenceRequestSchema>;
