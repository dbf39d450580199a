// A run and its attempts as the control plane keeps them, and what it shows of a run. Only shapes: what may become of
// them is in `runs.ts`, `assignments.ts` and `runLeases.ts`.

import type { RunError } from '../../contract/runControl.js';
import type { UnknownRecord } from '../../contract/json.js';
import type { ScriptedModel, Script } from '../scriptedModel.js';
import type { Lease } from './lease.js';
import type { Program } from './programs.js';
import type { RowStore } from './rowStore.js';
import type { Runner } from './runners.js';

/**
 * `queued`: ready or offered. `pending`: a runner has it, its process hasn't claimed it yet. `cancelling`: a runner has
 * it and was asked to stop. The other words are those of protocol/events.md 3.
 */
export type RunState = 'queued' | 'pending' | 'running' | 'cancelling' | 'completed' | 'failed' | 'cancelled';

/** What the runs of one request have in common. */
export interface RunPlan {
  readonly program: Program;
  /** As the version tells it. */
  readonly digest: string;
  readonly manifest: UnknownRecord;
  /** Names of secrets that the run may resolve. */
  readonly grants: ReadonlySet<string>;
  readonly secrets: ReadonlyMap<string, string>;
  readonly env: Readonly<Record<string, string>>;
  readonly input: unknown;
  readonly script: Script | null;
  readonly pool: string;
  readonly labels: readonly string[];
  readonly workflowId: string;
  readonly versionId: string;
}

export interface Run {
  readonly id: string;
  readonly plan: RunPlan;
  readonly rows: RowStore;
  readonly usage: RunUsage;
  readonly workerIds: Set<string>;
  readonly queuedAtMs: number;
  status: RunState;
  attempts: number;
  claims: number;
  finalizes: number;
  cancelRequested: boolean;
  /** The attempt that waits or works; `null` when the run is over. */
  assignment: Assignment | null;
  /** How the run ended, when its process ended it. */
  finalized: Finalized | null;
  doubleFinalized: boolean;
  output: unknown;
  error: RunError | null;
  claimedAtMs: number | null;
  startedAtMs: number | null;
  firstEventAtMs: number | null;
  finalizedAtMs: number | null;
}

export interface Finalized {
  readonly by: Assignment;
  readonly workerId: string;
  readonly status: 'completed' | 'failed';
  readonly output: unknown;
}

/** What was used, each report counted once. */
export interface RunUsage {
  /** By identifier: the largest value that was reported (protocol/run-control.md 7.1). */
  readonly seconds: Map<string, number>;
  /** By identifier: input and output tokens. */
  readonly tokens: Map<string, readonly [number, number]>;
  modelCalls: number;
  costMicros: number;
}

/** One attempt, from ready to closed (protocol/pool.md 8). */
export interface Assignment {
  readonly id: string;
  readonly run: Run;
  /** >= 1. */
  readonly attempt: number;
  readonly pool: string;
  readonly labels: readonly string[];
  readonly readyAtMs: number;
  /** The model starts its script anew with each attempt, as the program starts anew. */
  readonly model: ScriptedModel;
  state: 'ready' | 'offered' | 'leased' | 'closed';
  /** While offered: when it is offered to others again. */
  offer: Lease | null;
  /** Since it was claimed. */
  holder: Holder | null;
}

export interface Holder {
  readonly runner: Runner;
  readonly leaseId: string;
  readonly runToken: string;
  readonly apiToken: string;
  readonly lease: Lease;
  /** The run lease, since a worker claimed it. */
  work: { readonly workerId: string; readonly lease: Lease } | null;
}

/** Times in ms since the epoch; `null`: not yet. */
export interface RunView {
  readonly status: RunState;
  /** What the program returned; `null` until it has, and when the run failed. */
  readonly output: unknown;
  readonly error: RunError | null;
  /** Platform attempts: 1, and one more for each lease that ran out. */
  readonly attempts: number;
  /** Run claims that were granted, repeats by the same worker included: every start of a run by a fleet makes one. */
  readonly claims: number;
  /** Finalizes that arrived with a token of this run, whatever they were answered. */
  readonly finalizes: number;
  /** Who claimed the run, in order. */
  readonly worker_ids: readonly string[];
  readonly queued_at: number;
  readonly claimed_at: number | null;
  readonly first_event_at: number | null;
  readonly finalized_at: number | null;
  readonly usage: {
    readonly runtime_seconds: number;
    readonly input_tokens: number;
    readonly output_tokens: number;
    readonly model_calls: number;
    readonly cost_micros: number;
  };
}

export function isOver(run: Run): boolean {
  return run.status === 'completed' || run.status === 'failed' || run.status === 'cancelled';
}

export function viewOf(run: Run): RunView {
  const { seconds, tokens, modelCalls, costMicros } = run.usage;
  return {
    status: run.status,
    output: run.output,
    error: run.error,
    attempts: run.attempts,
    claims: run.claims,
    finalizes: run.finalizes,
    worker_ids: [...run.workerIds],
    queued_at: run.queuedAtMs,
    claimed_at: run.claimedAtMs,
    first_event_at: run.firstEventAtMs,
    finalized_at: run.finalizedAtMs,
    usage: {
      runtime_seconds: sum(seconds.values()),
      input_tokens: sum([...tokens.values()].map(([input]) => input)),
      output_tokens: sum([...tokens.values()].map(([, output]) => output)),
      model_calls: modelCalls,
      cost_micros: costMicros,
    },
  };
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
