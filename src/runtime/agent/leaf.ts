// One `agent()` call from its turn's beginning to its end (protocol/agent-loop.md 1, 4; protocol/events.md 4). It guards
// the order of its rows, and that `turn_ended` comes whatever happened. Without tools a leaf is one model call; the
// loop over several will be in this place.

import { randomUUID } from 'node:crypto';
import type { InferenceFrame, TurnUsage } from '../../contract/inference.js';
import { redact } from '../../redaction/redact.js';
import type { SecretSet } from '../../redaction/secretSet.js';
import type { Budget } from '../budget.js';
import type { Control } from '../control.js';
import type { EventBody, EventStream } from '../eventStream.js';
import { curate, RunFailure } from '../runFailure.js';
import type { UsageReports } from '../usageReports.js';
import { firstMessage } from './firstMessage.js';
import { callModel } from './modelCall.js';
import { type LeafOptions, readAgentOptions } from './options.js';
import { ShownText } from './shownText.js';

export interface AgentDependencies {
  readonly control: Pick<Control, 'stream'>;
  readonly events: EventStream;
  readonly secrets: SecretSet;
  readonly budget: Budget;
  readonly usage: Pick<UsageReports, 'tokens'>;
  /** Aborted with the run, with the error that a stopped call fails with. */
  readonly signal: AbortSignal;
  readonly now?: () => number;
}

export class Agents {
  readonly #deps: AgentDependencies;
  #leaves = 0;

  constructor(deps: AgentDependencies) {
    this.#deps = deps;
  }

  /** The final text. @throws RunFailure */
  async run(prompt: unknown, opts: unknown): Promise<string> {
    if (typeof prompt !== 'string')
      throw new RunFailure('VALIDATION', 'agent(): the prompt must be a string.');
    const options = readAgentOptions(opts);
    this.#leaves += 1;
    return runLeaf(this.#leaves, prompt, options, this.#deps);
  }
}

async function runLeaf(
  leaf: number,
  prompt: string,
  options: LeafOptions,
  deps: AgentDependencies,
): Promise<string> {
  const { events, signal, secrets } = deps;
  const turnId = `turn-${randomUUID()}`;
  const agent = {
    agentId: `agent-${leaf}`,
    ...(options.name === undefined ? {} : { agentName: redact(options.name, secrets) }),
  };
  events.startTurn(turnId, agent);
  try {
    const { text, usage } = await answerOf(leaf, turnId, prompt, options, deps);
    events.emit({ kind: 'turn_ended', ...agent, reason: 'complete', usage: countable(usage) }, turnId);
    return text;
  } catch (error) {
    // Whatever a stopped call threw, what happened is that the run was stopped.
    const cause: unknown = signal.aborted ? signal.reason : error;
    const { code, message } = curate(cause instanceof Error ? cause : { message: String(cause) }, secrets);
    const reason = signal.aborted ? 'cancelled' : 'error';
    events.emit({ kind: 'turn_ended', ...agent, reason, error: { code, message } }, turnId);
    throw cause;
  }
}

async function answerOf(
  leaf: number,
  turnId: string,
  prompt: string,
  options: LeafOptions,
  deps: AgentDependencies,
): Promise<{ readonly text: string; readonly usage: TurnUsage }> {
  const { control, events, secrets, budget, usage, signal, now = Date.now } = deps;
  const shown = new ShownText({
    blockId: 'text-1',
    secrets,
    emit: (event: EventBody) => events.emit(event, turnId),
  });
  // Back-pressure belongs between model calls: a stream that isn't read is a generation that is paid for and held up.
  await events.room();
  signal.throwIfAborted();
  budget.check();
  const body = {
    model: options.model,
    provider: options.provider,
    messages: [{ role: 'user', content: redact(firstMessage(prompt, now()), secrets) }],
    tools: [],
    reasoning: options.reasoning,
  };
  try {
    const result = await callModel(body, {
      agentName: options.name === undefined ? undefined : redact(options.name, secrets),
      control,
      signal,
      onFrame: async (frame) => {
        show(frame, shown);
        if (events.isOverfull) await events.room();
      },
    });
    shown.end();
    budget.spend(result.turn.usage, result.costMicros);
    usage.tokens(leaf, result.turn.usage, result.modelRef);
    return { text: result.turn.text, usage: result.turn.usage };
  } catch (error) {
    shown.flush();
    throw error;
  }
}

function show(frame: InferenceFrame, shown: ShownText): void {
  switch (frame.kind) {
    case 'delta':
      shown.delta(frame.text);
      return;
    case 'reasoning':
      shown.reasoning(frame.text);
      return;
    case 'reset':
      shown.reset();
      return;
    case 'result':
    case 'error':
    case 'ping':
  }
}

/** The event takes whole numbers only (protocol/events.md 3). */
function countable(usage: TurnUsage): Record<string, number> {
  return Object.fromEntries(
    Object.entries(usage)
      .filter(
        (entry): entry is [string, number] =>
          typeof entry[1] === 'number' && entry[1] >= 0 && Number.isFinite(entry[1]),
      )
      .map(([key, tokens]) => [key, Math.floor(tokens)]),
  );
}
