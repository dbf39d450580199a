// One model call: an entry of the run's script, played as the frames of protocol/inference.md 3. It guards what a
// client may rely on: status 200 at once, a sign of life while nothing is said, exactly one result or error, and
// silence as soon as nobody listens. A call is charged when its result has been said, so a repeat is charged once.

import { setTimeout as pause } from 'node:timers/promises';
import { AGENT_HEADER } from '../../contract/fleetCalls.js';
import { inferenceRequestSchema, type InferenceRequest } from '../../contract/runControl.js';
import { lastPrompt, type ScriptedAnswer, type ScriptStep } from '../scriptedModel.js';
import { refused, type Answer } from './answer.js';
import type { Incoming } from './incoming.js';
import type { Outlet } from './outlet.js';
import type { Assignment, Run } from './run.js';

/** At least one byte in this time (protocol/inference.md 2). */
const PING_MS = 10_000;
const CONTEXT_TOKENS = 200_000;
/** For a script that doesn't say: what English text comes to. */
const CHARS_PER_TOKEN = 4;

export function inferenceAnswer(request: Incoming, { run, model }: Assignment): Answer | Promise<Answer> {
  const call = request.read('inference request', inferenceRequestSchema);
  const answer = model.answer({ prompt: lastPrompt(call.messages), agentName: agentNameOf(request) });
  const status = answer.steps.find((step) => step.kind === 'status');
  if (status !== undefined) return statusAnswer(status.status, answer.steps, request);
  return {
    status: 200,
    contentType: 'application/x-ndjson',
    play: (outlet) => play(answer, call, run, outlet),
  };
}

/** A client that is not ours doesn't say who asks. */
function agentNameOf(request: Incoming): string | null | undefined {
  const header = request.header(AGENT_HEADER);
  if (header === undefined) return undefined;
  try {
    return header === '' ? null : decodeURIComponent(header);
  } catch {
    return header;
  }
}

async function statusAnswer(
  status: number,
  steps: readonly ScriptStep[],
  request: Incoming,
): Promise<Answer> {
  const gone = new AbortController();
  request.onGone(() => gone.abort());
  for (const step of steps) if (step.kind === 'wait') await waitFor(step.ms, gone.signal);
  return refused(status, 'SCRIPTED', `The script answers this call with ${status}.`);
}

interface Said {
  text: string;
  /** Of everything, void or not: it was generated. */
  chars: number;
  toolCalls: { readonly id: string; readonly name: string; readonly input: unknown }[];
}

async function play(answer: ScriptedAnswer, call: InferenceRequest, run: Run, outlet: Outlet): Promise<void> {
  const say = (frame: object): Promise<void> => outlet.write(`${JSON.stringify(frame)}\n`);
  const alive = setInterval(() => {
    if (outlet.silentMs >= PING_MS) void say({ t: 'ping' });
  }, PING_MS / 2);
  alive.unref();
  const said: Said = { text: '', chars: 0, toolCalls: [] };
  try {
    for (const step of answer.steps) {
      if (outlet.signal.aborted) return;
      if (step.kind === 'drop') {
        outlet.drop();
        return;
      }
      if (step.kind === 'error') {
        await say({ t: 'error', error: { code: step.code, message: step.message } });
        outlet.end();
        return;
      }
      await playStep(step, said, say, outlet.signal);
    }
    if (outlet.signal.aborted) return;
    run.usage.modelCalls += 1;
    run.usage.costMicros += answer.costMicros ?? 0;
    await say(resultFrame(answer, call, said));
    outlet.end();
  } finally {
    clearInterval(alive);
  }
}

async function playStep(
  step: Exclude<ScriptStep, { readonly kind: 'drop' | 'error' }>,
  said: Said,
  say: (frame: object) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  switch (step.kind) {
    case 'text':
      said.text += step.text;
      said.chars += step.text.length;
      return say({ t: 'delta', text: step.text });
    case 'reasoning':
      said.chars += step.text.length;
      return say({ t: 'reasoning', text: step.text });
    case 'tool':
      said.toolCalls.push({ id: `call_${said.toolCalls.length + 1}`, name: step.name, input: step.input });
      return;
    case 'reset':
      said.text = '';
      said.toolCalls = [];
      return say({ t: 'reset' });
    case 'ping':
      for (let count = 0; count < step.count; count += 1) await say({ t: 'ping' });
      return;
    case 'wait':
      return waitFor(step.ms, signal);
    case 'status':
      // Answered before there was a stream.
      return;
  }
}

/** Hanging up ends it early; what follows looks at the signal. */
async function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal, ref: false }).catch(() => undefined);
}

function resultFrame({ usage, costMicros = 0 }: ScriptedAnswer, call: InferenceRequest, said: Said): object {
  const estimated = {
    inputTokens: Math.ceil(JSON.stringify(call.messages).length / CHARS_PER_TOKEN),
    outputTokens: Math.ceil(said.chars / CHARS_PER_TOKEN),
  };
  return {
    t: 'result',
    turn: {
      text: said.text,
      toolCalls: said.toolCalls,
      usage: usage ?? estimated,
      wantsTools: said.toolCalls.length > 0,
    },
    modelRef: `${call.provider ?? 'local'}/${call.model ?? 'scripted'}`,
    costMicros,
    contextTokens: CONTEXT_TOKENS,
  };
}
