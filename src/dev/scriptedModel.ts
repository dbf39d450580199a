// A model that says what a script tells it, so that a test or a demo can stream, restart, break and fail on demand.
// It guards against answers that swap between parallel agents: an entry belongs to the calls that its conditions name,
// and is used once. It only decides what is said; the stream itself is the control plane's.

import { z } from 'zod';
import { OperatorError } from '../contract/operatorError.js';
import { isRecord } from '../contract/json.js';

export type ScriptStep =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'tool'; readonly name: string; readonly input: Readonly<Record<string, unknown>> }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'ping'; readonly count: number }
  /** What was streamed so far is void. */
  | { readonly kind: 'reset' }
  /** The connection breaks here. */
  | { readonly kind: 'drop' }
  /** The call is answered with this status instead of a stream. */
  | { readonly kind: 'status'; readonly status: number }
  | { readonly kind: 'error'; readonly code: string; readonly message: string };

export interface ScriptUsage {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly cacheReadTokens?: number | undefined;
  readonly cacheCreationTokens?: number | undefined;
}

/** What one call is answered with. */
export interface ScriptedAnswer {
  readonly steps: readonly ScriptStep[];
  /** Absent: estimated from the lengths of the texts. */
  readonly usage?: ScriptUsage | undefined;
  /** Millionths of a US dollar. Default 0. */
  readonly costMicros?: number | undefined;
}

export interface ScriptEntry extends ScriptedAnswer {
  /** Of the last user message. Absent: any prompt. */
  readonly match?: ((prompt: string) => boolean) | undefined;
  /** The agent's name. Absent: any agent. */
  readonly agent?: string | undefined;
}

export type Script = readonly ScriptEntry[];

export interface ModelCall {
  /** Text of the last user message. */
  readonly prompt: string;
  /** `null`: the agent has no name; `undefined`: the call doesn't say (the wire has no field for it). */
  readonly agentName: string | null | undefined;
}

/** The calls of one attempt; the next attempt starts over, and so does its script. */
export class ScriptedModel {
  readonly #script: Script | null;
  readonly #used = new Set<ScriptEntry>();

  /** @param script `null`: the model answers for itself */
  constructor(script: Script | null) {
    this.#script = script;
  }

  /** The first entry whose conditions hold and that no earlier call took; else an answer of the model's own. */
  answer(call: ModelCall): ScriptedAnswer {
    if (this.#script === null) return ownAnswer(call.prompt, 'no_script');
    const free = this.#script.filter(
      (entry) => !this.#used.has(entry) && (entry.match?.(call.prompt) ?? true),
    );
    const entry = choose(free, call.agentName);
    if (entry === undefined) return ownAnswer(call.prompt, 'no_entry_left');
    this.#used.add(entry);
    return entry;
  }
}

/** A call that doesn't say which agent makes it leaves the entries of named agents alone as long as it can. */
function choose(free: Script, agentName: ModelCall['agentName']): ScriptEntry | undefined {
  if (agentName === undefined) return free.find((entry) => entry.agent === undefined) ?? free[0];
  return free.find((entry) => entry.agent === undefined || entry.agent === agentName);
}

/**
 * Text of the last user message of a conversation; `''` when there is none. Messages come unchecked
 * (protocol/inference.md 1), so anything of another shape counts as no text.
 */
export function lastPrompt(messages: readonly unknown[]): string {
  const last = messages.findLast((message) => isRecord(message) && message['role'] === 'user');
  const content = isRecord(last) ? last['content'] : undefined;
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part: unknown) => (isRecord(part) ? part['text'] : undefined))
    .filter((text) => typeof text === 'string')
    .join('\n');
}

const MAX_SHOWN = 120;
const OWN_PACE_MS = 15;

function ownAnswer(prompt: string, why: 'no_script' | 'no_entry_left'): ScriptedAnswer {
  // The question stands last; before it comes what the runtime adds to every prompt (protocol/agent-loop.md 3).
  const asked = prompt.split('\n\n').at(-1)?.trim() ?? '';
  const shown = asked.length > MAX_SHOWN ? `${asked.slice(0, MAX_SHOWN - 1)}…` : asked;
  const texts =
    why === 'no_script'
      ? ['You asked: “', shown, '”. ', 'I am the local model: ', 'I answer at once, ', 'and know nothing.']
      : ['No entry of the script is left for “', shown, '”, ', 'so the local model ', 'answers for itself.'];
  const thoughts = ['The question is short, ', 'so the answer ', 'should be too.'];
  return {
    steps: [
      ...thoughts.map((text): ScriptStep => ({ kind: 'reasoning', text })),
      ...texts.flatMap((text): ScriptStep[] => [
        { kind: 'wait', ms: OWN_PACE_MS },
        { kind: 'text', text },
      ]),
    ],
  };
}

const MAX_WAIT_MS = 3_600_000;
const tokens = z.int().min(0);

/** What may stand beside each key of a step that is an object. */
const STEPS = {
  text: z.string().transform((text): ScriptStep => ({ kind: 'text', text })),
  reasoning: z.string().transform((text): ScriptStep => ({ kind: 'reasoning', text })),
  tool: z
    .strictObject({ name: z.string().min(1), input: z.record(z.string(), z.unknown()).default({}) })
    .transform((tool): ScriptStep => ({ kind: 'tool', ...tool })),
  wait_ms: z
    .int()
    .min(0)
    .max(MAX_WAIT_MS)
    .transform((ms): ScriptStep => ({ kind: 'wait', ms })),
  ping: z
    .int()
    .min(1)
    .max(10_000)
    .transform((count): ScriptStep => ({ kind: 'ping', count })),
  status: z
    .int()
    .min(400)
    .max(599)
    .transform((status): ScriptStep => ({ kind: 'status', status })),
  error: z
    .union([
      z.string().transform((message) => ({ message })),
      z.strictObject({ code: z.string().min(1).optional(), message: z.string().optional() }),
    ])
    .transform((error): ScriptStep => ({
      kind: 'error',
      code: 'code' in error ? (error.code ?? 'PROVIDER_ERROR') : 'PROVIDER_ERROR',
      message: error.message ?? 'The script says that the call fails.',
    })),
} as const;

const ALLOWED = `one of "reset", "drop" or an object with one of ${Object.keys(STEPS).join(', ')}`;

const stepSchema = z.unknown().transform((step, context): ScriptStep => {
  if (step === 'reset' || step === 'drop') return { kind: step };
  const [key, ...more] = isRecord(step) ? Object.keys(step) : [];
  if (!isRecord(step) || !isStepName(key) || more.length > 0) {
    const given = isRecord(step) ? ` (not ${Object.keys(step).join(', ') || 'an empty one'})` : '';
    context.addIssue({ code: 'custom', message: `must be ${ALLOWED}${given}` });
    return z.NEVER;
  }
  const read = STEPS[key].safeParse(step[key]);
  if (read.success) return read.data;
  for (const { path, message } of read.error.issues)
    context.addIssue({ code: 'custom', path: [key, ...path], message });
  return z.NEVER;
});

const stepsSchema = z.array(stepSchema).superRefine((steps, context) => {
  steps.forEach((step, index) => {
    if ((step.kind === 'drop' || step.kind === 'error' || step.kind === 'status') && index < steps.length - 1)
      context.addIssue({
        code: 'custom',
        path: [index],
        message: `a ${step.kind} ends the call: nothing may follow`,
      });
    if (step.kind === 'status' && steps.slice(0, index).some((before) => before.kind !== 'wait'))
      context.addIssue({ code: 'custom', path: [index], message: 'only wait_ms may come before a status' });
  });
});

const entrySchema = z.strictObject({
  match: z.string().min(1).transform(readMatch).optional(),
  agent: z.string().min(1).optional(),
  steps: stepsSchema,
  usage: z
    .strictObject({
      inputTokens: tokens.optional(),
      outputTokens: tokens.optional(),
      cacheReadTokens: tokens.optional(),
      cacheCreationTokens: tokens.optional(),
    })
    .optional(),
  costMicros: z.number().min(0).optional(),
});

/** @throws OperatorError `SCRIPT_INVALID` that names the entry and the field */
export function parseScript(value: unknown): Script {
  const read = z.array(entrySchema).safeParse(value);
  if (read.success) return read.data;
  const issue = read.error.issues[0];
  const where = (issue?.path ?? []).map((step) =>
    typeof step === 'number' ? `[${step}]` : `.${String(step)}`,
  );
  const why =
    issue?.code === 'unrecognized_keys'
      ? `no such field: ${issue.keys.join(', ')}`
      : (issue?.message ?? 'is not valid');
  throw new OperatorError('SCRIPT_INVALID', `script${where.join('')}: ${why}.`, {
    hint: 'A script is a list of {match?, agent?, steps, usage?, costMicros?}.',
  });
}

/** `/pattern/flags` is a regular expression, anything else a part of the text. */
function readMatch(text: string, context: z.RefinementCtx): (prompt: string) => boolean {
  const [, pattern, flags] = /^\/(.+)\/([a-z]*)$/s.exec(text) ?? [];
  if (pattern === undefined) return (prompt) => prompt.includes(text);
  try {
    // A sticky or global one would remember where it stopped in another prompt.
    const expression = new RegExp(pattern, flags?.replace(/[gy]/g, ''));
    return (prompt) => expression.test(prompt);
  } catch (error) {
    context.addIssue({
      code: 'custom',
      message: error instanceof Error ? error.message : 'is not a regular expression',
    });
    return z.NEVER;
  }
}

function isStepName(key: string | undefined): key is keyof typeof STEPS {
  return key !== undefined && Object.hasOwn(STEPS, key);
}
