// Run events (protocol/events.md 3, 6): a strict schema for each kind, for what we produce, and one lenient reader that
// drops what a newer producer added. Guards against a viewer that dies on a kind it doesn't know: such an event is null,
// and the reader's cursor moves on. How rows are folded is `fold.ts`.

import { z } from 'zod';
import { parseLenient } from './lenient.js';

export {
  CHANNELS,
  DEFAULT_CHANNELS,
  channelOf,
  isEventKind,
  type Channel,
  type EventKind,
} from './eventKinds.js';

const filled = z.string().min(1);
const text = z.string();
const count = z.int().min(0);
const stream = z.enum(['stdout', 'stderr']);

export const eventErrorSchema = z.strictObject({ code: text, message: text, hint: text.optional() });

export const eventUsageSchema = z.strictObject({
  inputTokens: count.optional(),
  outputTokens: count.optional(),
  cacheCreationTokens: count.optional(),
  cacheReadTokens: count.optional(),
  totalTokens: count.optional(),
});

export const runStatusSchema = z.enum([
  'queued',
  'pending',
  'running',
  'sleeping',
  'awaiting_input',
  'waiting_for_child',
  'completed',
  'failed',
  'cancelled',
  'cancelling',
]);

const anyObject = z.record(z.string(), z.unknown());
/** Any JSON; the member itself must be there. */
const anyValue = z.unknown().refine((value) => value !== undefined, 'is missing');

const agent = { agentId: filled, agentName: filled.optional() };
const tool = { toolCallId: text };

function event<K extends string, F extends z.core.$ZodShape>(kind: K, fields: F) {
  return z.strictObject({
    runId: filled,
    turnId: filled,
    seq: z.int().min(1),
    t: count,
    kind: z.literal(kind),
    ...fields,
  });
}

export const runEventSchema = z.discriminatedUnion('kind', [
  event('run_status', { status: runStatusSchema, error: eventErrorSchema.optional() }),
  event('suspended', { reason: z.enum(['sleep', 'human_input', 'child']), wakeAt: count.optional() }),
  event('resumed', {}),
  event('human_input_requested', { requestId: filled, key: filled, prompt: text }),
  event('human_input_resolved', { requestId: filled, key: filled }),
  event('phase', { name: filled, id: filled }),
  event('output', { value: anyValue }),
  event('program_output', { stream, text }),
  event('egress_denied', { host: filled, method: text.optional(), reason: filled }),
  event('workspace_persist_skipped', {
    reason: z.enum(['too_large', 'storage_limit', 'error']),
    bytes: count.optional(),
    maxBytes: z.int().min(1).optional(),
    detail: text.optional(),
  }),
  event('turn_started', agent),
  event('turn_ended', {
    ...agent,
    reason: z.enum(['complete', 'cancelled', 'error']),
    usage: eventUsageSchema.optional(),
    error: eventErrorSchema.optional(),
  }),
  event('reasoning_delta', { text }),
  event('text_start', { blockId: text }),
  event('text_delta', { blockId: text, text }),
  event('text_end', { blockId: text }),
  event('turn_reset', {}),
  event('tool_call_start', { ...tool, toolName: text }),
  event('tool_call_input_delta', { ...tool, partialJson: text }),
  event('tool_call_input_complete', { ...tool, input: anyObject }),
  event('tool_call_executing', tool),
  event('tool_output_delta', { ...tool, stream, text }),
  event('tool_call_result', {
    ...tool,
    result: z.strictObject({
      kind: text.optional(),
      humanSummary: text.optional(),
      data: anyObject.optional(),
    }),
  }),
  event('tool_call_error', { ...tool, error: eventErrorSchema }),
  event('compaction_started', {
    ...agent,
    tokens: count,
    budget: count,
    contextTokens: z.int().min(1).optional(),
  }),
  event('compaction_ended', {
    ...agent,
    tokens: count,
    reclaimed: count,
    method: z.enum(['deduped', 'summarized', 'none']),
  }),
]);

export type RunEvent = z.infer<typeof runEventSchema>;
export type RunStatus = z.infer<typeof runStatusSchema>;
export type EventError = z.infer<typeof eventErrorSchema>;

/** A row as it is stored and sent; a frame of `telemetry` is its JSON text. */
export interface EventRow {
  readonly cursor: number;
  readonly event: RunEvent;
}

/** The event without keys that we don't know; null for anything else that the schema refuses (skip it, go on). */
export function parseRunEventLenient(event: unknown): RunEvent | null {
  return parseLenient(runEventSchema, event);
}
