// What a runner may do with an assignment: be offered it, claim it, keep it (protocol/pool.md 5-8). It guards the one
// thing that everything else rests on: of all who try to claim an assignment, exactly one gets it.

import { Lease } from './lease.js';
import type { Assignment, Holder } from './run.js';
import type { Runner } from './runners.js';
import type { Runs } from './runs.js';
import { newId, newToken } from './tokens.js';

export interface AssignmentTiming {
  readonly leaseMs: number;
  /** How long an offer waits for its claim before the run is offered to others. */
  readonly offerMs: number;
  readonly pollHoldMs: number;
}

export interface Offering {
  /** Already reserved for this poll; `null`: nothing in time. */
  readonly offer: Promise<Assignment | null>;
  release(): void;
}

export type ClaimOutcome =
  | { readonly outcome: 'claimed'; readonly assignment: Assignment; readonly holder: Holder }
  /** Somebody has it, or it was withdrawn. */
  | { readonly outcome: 'lost' }
  /** There is none with this id for this runner. */
  | { readonly outcome: 'unknown' };

export type BeatOutcome =
  | { readonly outcome: 'renewed'; readonly until: number; readonly cancelRequested: boolean }
  | { readonly outcome: 'lost' };

export class Assignments {
  readonly #runs: Runs;
  readonly #timing: AssignmentTiming;
  readonly #byLease = new Map<string, Assignment>();

  constructor(runs: Runs, timing: AssignmentTiming) {
    this.#runs = runs;
    this.#timing = timing;
  }

  /** One poll of a runner. */
  poll(runner: Runner): Offering {
    const held = this.#runs.dispatch.poll(runner, this.#timing.pollHoldMs);
    return {
      offer: held.answer.then((assignment) =>
        assignment !== null && this.#offer(assignment) ? assignment : null,
      ),
      release: () => held.release(),
    };
  }

  /** The offer didn't reach anybody: others get it at once. */
  takeBackOffer(assignment: Assignment): void {
    if (assignment.state !== 'offered') return;
    assignment.offer?.release();
    assignment.offer = null;
    assignment.state = 'ready';
    this.#runs.dispatch.add(assignment, 'front');
  }

  /** The first one gets it, whoever it was offered to. A repeat is late too (protocol/pool.md 16). */
  claim(runner: Runner, assignmentId: string): ClaimOutcome {
    const assignment = this.#runs.assignment(assignmentId);
    if (assignment === undefined || !mayHave(runner, assignment)) return { outcome: 'unknown' };
    if (assignment.state !== 'ready' && assignment.state !== 'offered') return { outcome: 'lost' };
    assignment.offer?.release();
    this.#runs.dispatch.withdraw(assignment);
    const holder: Holder = {
      runner,
      leaseId: newId('lse'),
      runToken: newToken('bwkrun'),
      apiToken: newToken('bwkapi'),
      lease: new Lease(this.#timing.leaseMs, () => this.#runs.takeBack(assignment)),
      work: null,
    };
    assignment.state = 'leased';
    assignment.holder = holder;
    this.#byLease.set(holder.leaseId, assignment);
    const { run } = assignment;
    run.claimedAtMs ??= Date.now();
    this.#runs.setStatus(run, 'pending');
    return { outcome: 'claimed', assignment, holder };
  }

  heartbeat(runner: Runner, leaseId: string, runId: string): BeatOutcome {
    const assignment = this.#byLease.get(leaseId);
    if (assignment?.run.id !== runId || assignment.holder?.runner !== runner) return { outcome: 'lost' };
    const { lease } = assignment.holder;
    if (!lease.renew(this.#timing.leaseMs)) return { outcome: 'lost' };
    return { outcome: 'renewed', until: lease.until, cancelRequested: assignment.run.cancelRequested };
  }

  /** `false`: it was withdrawn on its way from the queue to the poll. */
  #offer(assignment: Assignment): boolean {
    if (assignment.state !== 'ready') return false;
    assignment.state = 'offered';
    assignment.offer = new Lease(this.#timing.offerMs, () => this.takeBackOffer(assignment));
    return true;
  }
}

function mayHave(runner: Runner, { pool, labels }: Assignment): boolean {
  return runner.pool === pool && labels.every((label) => runner.labels.includes(label));
}
