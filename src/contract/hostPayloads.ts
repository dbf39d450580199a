// The larger bodies of the program-to-host protocol: a program's context, the options of an agent, the budget's state
// (protocol/sdk.md 1.8, 4.1; protocol/program.md 6). Split from the table of methods only for its length.

import { z } from 'zod';
import { REASONING_EFFORTS } from './reasoning.js';

const filled = z.string().min(1);
const text = z.string();
const strings = z.array(z.string());
const stringMap = z.record(z.string(), z.string());
const jsonObject = z.record(z.string(), z.unknown());

/** Closed, as the SDK of the reference checks it: one key more and the program can't start. */
const actorSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('user'), user_id: filled }),
  z.strictObject({
    type: z.literal('workflow'),
    parent_run_id: filled,
    parent_workflow_id: filled,
    user_id: filled,
  }),
  z.strictObject({ type: z.literal('webhook'), source: filled }),
  z.strictObject({ type: z.literal('cron'), rule: filled }),
  z.strictObject({
    type: z.literal('event'),
    subscription_id: filled,
    source_run_id: filled,
    source_workflow_id: filled,
    event_type: filled,
    event_chain_depth: z.int().min(0),
  }),
]);

/** A program's context, without the signal that the client adds. */
export const programContextSchema = z.strictObject({
  runId: filled,
  workflowId: filled,
  workflowVersion: z.int().min(1),
  orgId: filled,
  environment: z.strictObject({ id: filled, name: filled }).nullable(),
  actor: actorSchema,
  attempt: z.int().min(1),
  trigger: z.strictObject({
    kind: z.enum(['cron', 'webhook', 'manual']),
    /** ms */
    firedAt: z.int().min(0),
    source: filled.optional(),
    request: z
      .strictObject({
        method: z.string().min(1).max(16),
        path: z.string().max(2_048),
        query: stringMap,
        headers: stringMap,
      })
      .optional(),
  }),
  workspaceDir: filled,
});

const reasoningEffortSchema = z.enum(REASONING_EFFORTS);

const reasoningSchema = z.union([
  reasoningEffortSchema,
  z.strictObject({
    effort: reasoningEffortSchema.optional(),
    maxTokens: z.int().min(1).optional(),
    exclude: z.boolean().optional(),
  }),
]);

const mcpServerSchema = z.discriminatedUnion('transport', [
  z.strictObject({
    name: filled,
    transport: z.literal('http'),
    url: text,
    headers: stringMap.optional(),
    excludeTools: strings.optional(),
  }),
  z.strictObject({
    name: filled,
    transport: z.literal('stdio'),
    command: text,
    args: strings.optional(),
    env: stringMap.optional(),
    excludeTools: strings.optional(),
  }),
]);

/** Options of `agent` on the wire: tools without their functions, a session by its id. */
export const agentOptionsSchema = z.strictObject({
  name: text.optional(),
  model: text.optional(),
  provider: text.optional(),
  reasoning: reasoningSchema.optional(),
  schema: jsonObject.optional(),
  tools: z.array(z.strictObject({ name: filled, description: text, input_schema: jsonObject })).optional(),
  builtins: z.union([z.enum(['all', 'read-only', 'none']), strings]).optional(),
  cwd: text.optional(),
  mcp: z.array(mcpServerSchema).optional(),
  skills: strings.optional(),
  memory: text.optional(),
  humanInput: z.boolean().optional(),
  maxIterations: z.number().optional(),
  sessionId: text.optional(),
  attachments: z
    .array(
      z.strictObject({
        mimeType: text,
        data: text.optional(),
        url: text.optional(),
        filename: text.optional(),
      }),
    )
    .optional(),
});

const dimension = z.strictObject({
  spent: z.number().min(0),
  cap: z.number().positive().nullable(),
  remaining: z.number().nullable(),
});

/** State of the budget; `cap` null means that there is none. */
export const usageSnapshotSchema = z.strictObject({
  usd: dimension,
  tokens: dimension,
  compute_seconds: dimension,
});

export type ProgramContext = z.infer<typeof programContextSchema>;
export type AgentOptions = z.infer<typeof agentOptionsSchema>;
export type UsageSnapshot = z.infer<typeof usageSnapshotSchema>;
