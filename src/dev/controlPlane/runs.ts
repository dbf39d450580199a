// All runs, and the ways in which one changes that more than one party can cause: it becomes ready, it is taken back
// because a lease ran out, it is cancelled, it is over. It guards what must hold whoever asks: the first terminal state
// stays, and a run that is taken back can't be touched any more with what its former attempt held.

import { isRecord } from '../../contract/json.js';
import type { RunError } from '../../contract/runControl.js';
import { ScriptedModel } from '../scriptedModel.js';
import { Dispatch } from './dispatch.js';
import { RowStore, type StoredRow } from './rowStore.js';
import {
  isOver,
  viewOf,
  type Assignment,
  type Finalized,
  type Run,
  type RunPlan,
  type RunState,
  type RunView,
} from './run.js';
import type { Tally } from './tally.js';
import { newId } from './tokens.js';

export type RowListener = (runId: string, row: StoredRow) => void;

interface Waiter {
  readonly resolve: (view: RunView) => void;
  readonly reject: (error: Error) => void;
}

export class Runs {
  readonly dispatch = new Dispatch<Assignment>();
  readonly #tally: Tally;
  readonly #byId = new Map<string, Run>();
  readonly #assignments = new Map<string, Assignment>();
  readonly #listeners = new Set<RowListener>();
  readonly #waiters = new Map<Run, Waiter[]>();

  constructor(tally: Tally) {
    this.#tally = tally;
  }

  create(plan: RunPlan): Run {
    const run: Run = {
      id: newId('run'),
      plan,
      rows: new RowStore(),
      usage: { seconds: new Map(), tokens: new Map(), modelCalls: 0, costMicros: 0 },
      workerIds: new Set(),
      queuedAtMs: Date.now(),
      status: 'queued',
      attempts: 0,
      claims: 0,
      finalizes: 0,
      cancelRequested: false,
      assignment: null,
      finalized: null,
      doubleFinalized: false,
      output: null,
      error: null,
      claimedAtMs: null,
      startedAtMs: null,
      firstEventAtMs: null,
      finalizedAtMs: null,
    };
    this.#byId.set(run.id, run);
    this.#tally.moved(null, 'queued');
    this.#makeReady(run);
    return run;
  }

  get(runId: string): Run | undefined {
    return this.#byId.get(runId);
  }

  /** Of any attempt, however long ago. */
  assignment(id: string): Assignment | undefined {
    return this.#assignments.get(id);
  }

  setStatus(run: Run, status: RunState): void {
    if (run.status === status) return;
    this.#tally.moved(run.status, status);
    run.status = status;
  }

  /** The process that held the run ended it. */
  finish(run: Run, finalized: Finalized): void {
    const { status, output } = finalized;
    run.finalized = finalized;
    if (status === 'completed') run.output = output;
    else run.error = errorOf(output);
    // There is no `cancelled` on the wire: a run that was being cancelled and failed was cancelled.
    this.#end(run, status === 'failed' && run.cancelRequested ? 'cancelled' : status);
  }

  /** A run that nobody has is over at once; one that a runner has is asked to stop; one that is over stays. */
  cancel(run: Run): void {
    if (isOver(run)) return;
    run.cancelRequested = true;
    if (run.assignment?.state === 'leased') this.setStatus(run, 'cancelling');
    else this.#end(run, 'cancelled');
  }

  /** A lease ran out: whoever had the run has lost it, and it is ready again (protocol/pool.md 8). */
  takeBack(assignment: Assignment): void {
    const { run } = assignment;
    if (assignment.state !== 'leased') return;
    this.#tally.expiredLeases += 1;
    this.close(assignment);
    if (run.cancelRequested) {
      this.#end(run, 'cancelled');
      return;
    }
    this.setStatus(run, 'queued');
    this.#makeReady(run);
  }

  /** Nothing that the attempt held is good any more. */
  close(assignment: Assignment): void {
    assignment.state = 'closed';
    assignment.offer?.release();
    assignment.holder?.lease.release();
    assignment.holder?.work?.lease.release();
    this.dispatch.withdraw(assignment);
    if (assignment.run.assignment === assignment) assignment.run.assignment = null;
  }

  /** A row that a process sent; the counts of what is wrong with it are kept here. */
  addRow(run: Run, row: StoredRow): void {
    const arrival = run.rows.add(row);
    if (arrival === 'duplicate') {
      this.#tally.duplicateRows += 1;
      return;
    }
    if (arrival === 'regressed') this.#tally.cursorRegressions += 1;
    run.firstEventAtMs ??= Date.now();
    this.#announce(run, row);
  }

  /** Calls back for each row in the order in which it was stored, at once. */
  onRow(listener: RowListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  whenDone(run: Run): Promise<RunView> {
    if (isOver(run)) return Promise.resolve(viewOf(run));
    const done = new Promise<RunView>((resolve, reject) => {
      this.#waiters.set(run, [...(this.#waiters.get(run) ?? []), { resolve, reject }]);
    });
    // Whoever asked for many and awaits one after the other must not be ended by a stop.
    done.catch(() => undefined);
    return done;
  }

  /** No timer is left, and nobody waits any more. */
  stop(): void {
    this.dispatch.close();
    for (const { assignment } of this.#byId.values()) {
      assignment?.offer?.release();
      assignment?.holder?.lease.release();
      assignment?.holder?.work?.lease.release();
    }
    for (const waiters of this.#waiters.values())
      for (const { reject } of waiters)
        reject(new Error('The control plane was stopped before the run was over.'));
    this.#waiters.clear();
  }

  #makeReady(run: Run): void {
    run.attempts += 1;
    const { pool, labels, script } = run.plan;
    const assignment: Assignment = {
      id: newId('asg'),
      run,
      attempt: run.attempts,
      pool,
      labels,
      readyAtMs: Date.now(),
      model: new ScriptedModel(script),
      state: 'ready',
      offer: null,
      holder: null,
    };
    run.assignment = assignment;
    this.#assignments.set(assignment.id, assignment);
    this.#announce(run, run.rows.addStatus(run.id, 'queued', null));
    this.dispatch.add(assignment);
  }

  #end(run: Run, status: 'completed' | 'failed' | 'cancelled'): void {
    if (run.assignment !== null) this.close(run.assignment);
    this.setStatus(run, status);
    run.finalizedAtMs = Date.now();
    this.#announce(run, run.rows.addStatus(run.id, status, run.error));
    for (const { resolve } of this.#waiters.get(run) ?? []) resolve(viewOf(run));
    this.#waiters.delete(run);
  }

  #announce(run: Run, row: StoredRow): void {
    for (const listener of this.#listeners) listener(run.id, row);
  }
}

/** What a failed run's output says; a run that fails without a word gets one. */
function errorOf(output: unknown): RunError {
  const error = isRecord(output) ? output['error'] : undefined;
  const { code, message, hint } = isRecord(error) ? error : {};
  if (typeof code !== 'string' || typeof message !== 'string')
    return { code: 'INTERNAL_ERROR', message: 'The run was finalized as failed, without an error.' };
  return typeof hint === 'string' ? { code, message, hint } : { code, message };
}
