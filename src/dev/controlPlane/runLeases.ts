// What a run token may do: claim the run, keep it, send rows, end it (protocol/run-control.md 4, 13). It guards against
// the attempt that was given up and doesn't know: its token opens nothing any more, and what it sends would stand
// between the rows of its successor.

import { isDeepStrictEqual } from 'node:util';
import type { FinalizeBody, RunClaimRequest } from '../../contract/runControl.js';
import { Lease } from './lease.js';
import type { StoredRow } from './rowStore.js';
import type { Assignment, Run } from './run.js';
import type { Runs } from './runs.js';
import type { Tally } from './tally.js';

/** Rows of runners that finalize before they have drained (protocol/run-control.md 3, [0.2]). */
export const LATE_ROWS_MS = 60_000;

export interface RunLeasesOptions {
  /** The longest run lease; shorter ones on request. */
  readonly leaseMs: number;
  /** How long after its finalize an attempt may still send rows. */
  readonly lateRowsMs: number;
}

export class RunLeases {
  readonly #runs: Runs;
  readonly #tally: Tally;
  readonly #options: RunLeasesOptions;
  readonly #byToken = new Map<string, Assignment>();

  constructor(runs: Runs, tally: Tally, options: RunLeasesOptions) {
    this.#runs = runs;
    this.#tally = tally;
    this.#options = options;
  }

  /** From now on the token stands for this attempt, for ever. */
  bind(token: string, assignment: Assignment): void {
    this.#byToken.set(token, assignment);
  }

  withToken(token: string | null): Assignment | null {
    return (token === null ? undefined : this.#byToken.get(token)) ?? null;
  }

  /** Whether the attempt is the one that has the run; an overdue lease ends here. */
  isCurrent(assignment: Assignment): boolean {
    return assignment.state === 'leased' && assignment.holder?.lease.holds === true;
  }

  /** The attempt has the run, and a worker has claimed it. */
  isWorking(assignment: Assignment): boolean {
    return this.isCurrent(assignment) && assignment.holder?.work?.lease.holds === true;
  }

  /** @returns until when; `null`: it is another's, or over. A repeat by the same worker is granted again. */
  claim(assignment: Assignment, { workerId, leaseSeconds }: RunClaimRequest): number | null {
    const { run, holder } = assignment;
    if (!this.isCurrent(assignment) || holder === null) return null;
    const leaseMs = this.#leaseMs(leaseSeconds);
    if (holder.work === null) {
      holder.work = { workerId, lease: new Lease(leaseMs, () => this.#runs.takeBack(assignment)) };
    } else if (holder.work.workerId !== workerId || !holder.work.lease.renew(leaseMs)) {
      return null;
    }
    run.claims += 1;
    run.workerIds.add(workerId);
    run.startedAtMs ??= Date.now();
    if (!run.cancelRequested) this.#runs.setStatus(run, 'running');
    return holder.work.lease.until;
  }

  /** @returns until when; `null`: lost */
  renew(assignment: Assignment, { workerId, leaseSeconds }: RunClaimRequest): number | null {
    const work = this.isWorking(assignment) ? assignment.holder?.work : undefined;
    if (work?.workerId !== workerId) return null;
    return work.lease.renew(this.#leaseMs(leaseSeconds)) ? work.lease.until : null;
  }

  /** `false`: the attempt has no right to add rows; nothing was stored. */
  receive(assignment: Assignment, rows: readonly StoredRow[]): boolean {
    const { run } = assignment;
    const inTime = this.isWorking(assignment) || this.#isJustFinalized(run, assignment);
    if (inTime) for (const row of rows) this.#runs.addRow(run, row);
    return inTime;
  }

  /** `true`: accepted, now or before. `false`: another has ended the run, or has it now. */
  finalize(assignment: Assignment, { status, output, workerId }: FinalizeBody): boolean {
    const { run } = assignment;
    run.finalizes += 1;
    if (this.isWorking(assignment) && assignment.holder?.work?.workerId === workerId) {
      this.#runs.finish(run, { by: assignment, workerId, status, output });
      return true;
    }
    const first = run.finalized;
    if (first === null) return false;
    const isRepeat = first.by === assignment && first.workerId === workerId && first.status === status;
    if (!run.doubleFinalized && !(isRepeat && isDeepStrictEqual(first.output, output))) {
      run.doubleFinalized = true;
      this.#tally.doubleFinalized += 1;
    }
    return isRepeat;
  }

  #leaseMs(leaseSeconds: number): number {
    return Math.min(leaseSeconds * 1_000, this.#options.leaseMs);
  }

  #isJustFinalized(run: Run, assignment: Assignment): boolean {
    return (
      run.finalized?.by === assignment && Date.now() - (run.finalizedAtMs ?? 0) < this.#options.lateRowsMs
    );
  }
}
