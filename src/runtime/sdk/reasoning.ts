// The two ways to ask for thinking, as one (protocol/sdk.md 1.4). Anything that says nothing becomes nothing.

import { REASONING_EFFORTS, type ReasoningEffort } from '../../contract/reasoning.js';

export interface Reasoning {
  readonly effort?: ReasoningEffort;
  readonly maxTokens?: number;
  readonly exclude?: true;
}

/** `effort` wins over `maxTokens`; `exclude` is kept only when true. */
export function normalizeReasoning(value: unknown): Reasoning | undefined {
  if (isEffort(value)) return { effort: value };
  if (typeof value !== 'object' || value === null) return undefined;
  const effort = 'effort' in value && isEffort(value.effort) ? value.effort : undefined;
  const maxTokens = 'maxTokens' in value && typeof value.maxTokens === 'number' ? value.maxTokens : undefined;
  const exclude = 'exclude' in value && value.exclude === true;
  if (effort === undefined && maxTokens === undefined && !exclude) return undefined;
  return {
    ...(effort !== undefined ? { effort } : maxTokens !== undefined ? { maxTokens } : {}),
    ...(exclude ? { exclude: true } : {}),
  };
}

function isEffort(value: unknown): value is ReasoningEffort {
  return REASONING_EFFORTS.some((effort) => effort === value);
}
