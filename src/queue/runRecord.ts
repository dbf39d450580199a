// A run's record as others see it, read from its hash. The attempt token is not in it: whoever needs it made it.

import { RecordError } from './errors.js';

/** queued -> starting -> running -> finishing -> done; back to queued when an attempt ends without a finalize. */
export type RunPhase = 'queued' | 'starting' | 'running' | 'finishing' | 'done';

const PHASES: ReadonlySet<string> = new Set<RunPhase>(['queued', 'starting', 'running', 'finishing', 'done']);

/** One start of a run by us; the newest ten are kept. */
export interface AttemptRecord {
  readonly attempt: number;
  readonly executorId: string;
  readonly startedAtMs: number;
  /** Absent while it runs, or when nobody lived to tell. */
  readonly end?: { readonly atMs: number; readonly reason: string; readonly evidence: string };
}

/** All times in ms by Redis' clock, except the one that `setRunning` was given. */
export interface RunRecord {
  readonly runId: string;
  readonly leaseId: string;
  readonly assignmentId: string;
  readonly runnerId: string;
  readonly workflowId: string;
  readonly pool: string;
  readonly phase: RunPhase;
  /** How often the run was claimed by this fleet. */
  readonly claims: number;
  /** How often it was started by us, over all claims. */
  readonly attempt: number;
  readonly executorId: string | null;
  readonly claimedAtMs: number;
  readonly queuedAtMs: number | null;
  readonly startedAtMs: number | null;
  readonly runningAtMs: number | null;
  readonly finishingAtMs: number | null;
  readonly doneAtMs: number | null;
  readonly leaseLostAtMs: number | null;
  readonly cancelRequestedAtMs: number | null;
  readonly status: string | null;
  readonly answer: string | null;
  readonly attempts: readonly AttemptRecord[];
}

/** @throws RecordError */
export function readRunRecord(runId: string, fields: Readonly<Record<string, string>>): RunRecord {
  const text = (name: string): string => {
    const value = fields[name];
    if (value === undefined) throw new RecordError(`The record of run ${runId} has no ${name}.`);
    return value;
  };
  const time = (name: string): number | null => {
    const value = fields[name];
    return value === undefined ? null : Number(value);
  };
  return {
    runId,
    leaseId: text('leaseId'),
    assignmentId: text('assignmentId'),
    runnerId: text('runnerId'),
    workflowId: text('workflowId'),
    pool: text('pool'),
    phase: readPhase(text('phase')),
    claims: Number(fields['claims'] ?? 0),
    attempt: Number(fields['attempt'] ?? 0),
    executorId: fields['executorId'] ?? null,
    claimedAtMs: Number(text('claimedAtMs')),
    queuedAtMs: time('queuedAtMs'),
    startedAtMs: time('startedAtMs'),
    runningAtMs: time('runningAtMs'),
    finishingAtMs: time('finishingAtMs'),
    doneAtMs: time('doneAtMs'),
    leaseLostAtMs: time('leaseLostAtMs'),
    cancelRequestedAtMs: time('cancelRequestedAtMs'),
    status: fields['status'] ?? null,
    answer: fields['answer'] ?? null,
    attempts: readAttempts(fields),
  };
}

/** @throws RecordError */
export function readPhase(text: string): RunPhase {
  if (isPhase(text)) return text;
  throw new RecordError(`A run can't be in the phase ${JSON.stringify(text)}.`);
}

function isPhase(text: string): text is RunPhase {
  return PHASES.has(text);
}

// `start.<n>` is "<ms> <executor>", `end.<n>` is "<ms> <reason> <evidence>"; only the last part may hold spaces.
function readAttempts(fields: Readonly<Record<string, string>>): readonly AttemptRecord[] {
  return Object.keys(fields)
    .filter((name) => name.startsWith('start.'))
    .map((name) => {
      const attempt = Number(name.slice('start.'.length));
      const [startedAt = '', executorId = ''] = cut(fields[name] ?? '', 2);
      const end = fields[`end.${attempt}`];
      const [endedAt = '', reason = '', evidence = ''] = cut(end ?? '', 3);
      return {
        attempt,
        executorId,
        startedAtMs: Number(startedAt),
        ...(end === undefined ? {} : { end: { atMs: Number(endedAt), reason, evidence } }),
      };
    })
    .sort((a, b) => a.attempt - b.attempt);
}

function cut(text: string, parts: number): readonly string[] {
  const words = text.split(' ');
  return [...words.slice(0, parts - 1), words.slice(parts - 1).join(' ')];
}
