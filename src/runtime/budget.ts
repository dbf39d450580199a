// What the run has spent, and whether it may spend more (protocol/program.md 9). It guards against a cap that is
// silently ignored. Asking a person to raise a cap comes with human input; until then a breach ends the call with
// BUDGET_EXCEEDED, which is run-fatal.

import type { UsageSnapshot } from '../contract/hostPayloads.js';
import type { TurnUsage } from '../contract/inference.js';
import { RunFailure } from './runFailure.js';

/** USD per million tokens when a call doesn't tell its cost (protocol/inference.md 7). */
const INPUT_USD = 3;
const OUTPUT_USD = 15;

export interface BudgetCaps {
  readonly usd: number | null;
  readonly tokens: number | null;
  /** Seconds. */
  readonly compute: number | null;
}

type Dimension = UsageSnapshot['usd'];

export class Budget {
  readonly #caps: BudgetCaps;
  readonly #elapsedMs: () => number;
  #usd = 0;
  #tokens = 0;

  /** @param elapsedMs time since the run process began its run */
  constructor(caps: BudgetCaps, elapsedMs: () => number) {
    this.#caps = caps;
    this.#elapsedMs = elapsedMs;
  }

  /** Counts one model call. `costMicros` 0 = unknown, estimated then. */
  spend(usage: TurnUsage, costMicros: number): void {
    const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheCreationTokens = 0 } = usage;
    this.#tokens += inputTokens + outputTokens;
    const inputWorth = inputTokens + cacheReadTokens / 10 + cacheCreationTokens * 1.25;
    this.#usd +=
      costMicros > 0 ? costMicros / 1e6 : (inputWorth * INPUT_USD + outputTokens * OUTPUT_USD) / 1e6;
  }

  snapshot(): UsageSnapshot {
    return {
      usd: dimension(this.#usd, this.#caps.usd),
      tokens: dimension(this.#tokens, this.#caps.tokens),
      compute_seconds: dimension(Math.floor(this.#elapsedMs() / 1_000), this.#caps.compute),
    };
  }

  /** To be called before anything that costs. @throws RunFailure `BUDGET_EXCEEDED` when more than a cap is spent */
  check(): void {
    const { tokens, usd, compute_seconds: compute } = this.snapshot();
    refuse(tokens, 'max_tokens', 'tokens');
    refuse(usd, 'max_usd', 'USD');
    refuse(compute, 'max_compute_seconds', 'seconds of compute');
  }
}

function refuse({ spent, cap }: Dimension, setting: string, unit: string): void {
  if (cap === null || spent <= cap) return;
  throw new RunFailure(
    'BUDGET_EXCEEDED',
    `The run has spent ${spent} ${unit}; its budget.${setting} is ${cap}.`,
    {
      hint: `Raise budget.${setting} in the workflow's descriptor, or let the run do less.`,
    },
  );
}

function dimension(spent: number, cap: number | null): Dimension {
  return { spent, cap, remaining: cap === null ? null : Math.max(0, cap - spent) };
}
