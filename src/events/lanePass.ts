// One flush of one lane: its head to the platform, batch after batch, and the finalize behind the last row. It guards
// the order: one call at a time, and nothing leaves the lane before the platform has taken it, so that whoever comes
// next begins where this one was (at least once; the platform keeps the first write of a cursor).

import type { Logger } from 'pino';
import { RUN_LEASE_SECONDS } from '../contract/callPolicy.js';
import type { PlatformHttp } from '../platform/http.js';
import type { PlatformError } from '../platform/platformError.js';
import type { Fleet, FlushContext, FlushOutcome, LaneEntry } from '../queue/fleet.js';
import type { BackOff } from './backOff.js';
import { fitting, Suspects } from './batch.js';
import { finalizeRun, type FinishedRun } from './finalizeRun.js';
import { isSameAccess, openAccess, runHold, type RunAccess } from './runAccess.js';
import { verdictOn, type Refused } from './verdict.js';

/** Totals of a shipper since its start. */
export interface ShipperCounts {
  rowsShipped: number;
  runsFinished: number;
  /** Rows that the platform refuses; kept apart from their lanes. */
  rowsSetAside: number;
  /** Lanes that nobody may ship at present; kept. */
  lanesParked: number;
}

export interface PassLimits {
  readonly maxRows: number;
  /** Of the encoded body of a batch. */
  readonly maxBodyBytes: number;
  /** After so many batches, or so long, a lane gives its place to others that wait. */
  readonly turnBatches: number;
  readonly turnMs: number;
}

export interface LanePassOptions {
  readonly fleet: Pick<Fleet, 'lanes' | 'credentials' | 'runStates'>;
  readonly http: PlatformHttp;
  readonly log: Logger;
  readonly backOff: BackOff;
  readonly limits: PassLimits;
  readonly counts: ShipperCounts;
}

/** Until an attempt that was claimed may have taken the run lease. */
const AWAIT_ATTEMPT_MS = 2_000;

type Row = Extract<LaneEntry, { kind: 'row' }>;
type Finalize = Extract<LaneEntry, { kind: 'finalize' }>;
type Step = 'more' | FlushOutcome;

export class LanePass {
  readonly #options: LanePassOptions;
  readonly #runId: string;
  readonly #context: FlushContext;
  readonly #cut: AbortSignal;
  readonly #log: Logger;
  readonly #suspects = new Suspects();
  #access: RunAccess | null = null;
  /** The claim for which this pass has taken the run lease. */
  #leaseTaken: string | undefined;

  /** @param cut Breaks the call in flight off; the lane is no longer ours, or there is no time left. */
  constructor(options: LanePassOptions, runId: string, context: FlushContext, cut: AbortSignal) {
    this.#options = options;
    this.#runId = runId;
    this.#context = context;
    this.#cut = cut;
    this.#log = options.log.child({ runId });
  }

  async run(): Promise<FlushOutcome> {
    const { turnBatches, turnMs } = this.#options.limits;
    let turnBegan = performance.now();
    for (let batches = 1; !this.#isEnding; batches += 1) {
      const step = await this.#step();
      if (step !== 'more') return step;
      if (batches < turnBatches && performance.now() - turnBegan < turnMs) continue;
      if (await this.#context.othersWaiting()) return 'yield';
      batches = 0;
      turnBegan = performance.now();
    }
    // Whoever holds the lane next begins at its head.
    return 'yield';
  }

  get #isEnding(): boolean {
    return this.#context.signal.aborted || this.#cut.aborted;
  }

  async #step(): Promise<Step> {
    const { fleet, http, limits } = this.#options;
    const maxRows = this.#suspects.most(limits.maxRows);
    const head = await fleet.lanes.head(this.#runId, { maxRows, maxBytes: limits.maxBodyBytes });
    const [first] = head;
    if (first === undefined) return 'drained';
    this.#access ??= await openAccess(fleet, http, this.#runId);
    if (this.#access === null) return this.#park(null, 'there is no credential of its run');
    if (first.kind === 'finalize') return this.#finalize(first);
    const rows = head.filter((entry) => entry.kind === 'row');
    return this.#ship(rows.slice(0, fitting(rows, limits.maxBodyBytes)), this.#access);
  }

  async #ship(batch: readonly Row[], access: RunAccess): Promise<Step> {
    const { backOff, counts } = this.#options;
    const frames = batch.map((row) => row.frame);
    const verdict = verdictOn(await access.client.telemetry(frames, { signal: this.#cut }));
    switch (verdict.verdict) {
      case 'accepted':
        this.#suspects.accepted(batch.length);
        counts.rowsShipped += batch.length;
        backOff.succeeded(access.credential.baseUrl, this.#runId);
        return this.#trim(batch);
      case 'entry_refused':
        return this.#suspects.refused(batch.length) === 'narrowed' ? 'more' : this.#setAside(batch, verdict);
      case 'access_refused':
      case 'conflict':
        return this.#withoutAccess(access, verdict);
      case 'later':
        return this.#later(access, verdict.error);
      case 'cut':
        return 'yield';
    }
  }

  async #trim(batch: readonly Row[]): Promise<Step> {
    const last = batch.at(-1);
    if (last === undefined) return 'more';
    const { left } = await this.#options.fleet.lanes.trim(this.#runId, last.id);
    return left === 0 ? 'drained' : 'more';
  }

  async #setAside(batch: readonly Row[], { status, answer }: Refused<'entry_refused'>): Promise<Step> {
    for (const row of batch) {
      await this.#options.fleet.lanes.setAside(this.#runId, row, { status, body: answer }, Date.now());
      this.#options.counts.rowsSetAside += 1;
      this.#log.error(
        { cursor: row.cursor, bytes: row.bytes, status, answer },
        'the control plane refuses a row; it is set aside and the rest goes on',
      );
    }
    return this.#trim(batch);
  }

  async #finalize(entry: Finalize): Promise<Step> {
    const { fleet, http, backOff, counts } = this.#options;
    const access = await openAccess(fleet, http, this.#runId);
    this.#access = access;
    if (access === null) return this.#park(null, 'there is no credential of its run');
    const { leaseId, baseUrl } = access.credential;
    const hold = await runHold(fleet, this.#runId, leaseId);
    if (hold === 'lost') return this.#park(access, 'the lease of its run was lost before its finalize');
    // The entry is an earlier claim's; this one has found it and starts nothing.
    if (hold === 'nobody' && this.#leaseTaken !== leaseId) return this.#takeLease(access);

    const end = await finalizeRun(fleet.runStates, access, entry.body, this.#cut);
    switch (end.verdict) {
      case 'finished':
        counts.runsFinished += 1;
        backOff.succeeded(baseUrl, this.#runId);
        this.#reportEnd(end);
        return 'drained';
      case 'superseded':
        return 'retry';
      case 'access_refused':
        return this.#withoutAccess(access, end);
      case 'later':
        return this.#later(access, end.error);
      case 'cut':
        return 'yield';
    }
  }

  #reportEnd({ answer, refusal }: FinishedRun): void {
    if (refusal !== undefined) {
      const what =
        answer === 'refused'
          ? 'the control plane refuses the result of a run, and that the run is failed; it is given up'
          : 'the control plane refuses the result of a run; the run is failed';
      this.#log.error({ status: refusal.status, answer: refusal.answer }, what);
    }
    if (answer === 'other_owner')
      this.#log.warn('another owner has finished the run; our finalize is dropped');
  }

  /** The name was refused in which we speak. A newer claim's may be good; else it depends on who has the run lease. */
  async #withoutAccess(
    access: RunAccess,
    { status, answer }: { readonly status: number; readonly answer: string },
  ): Promise<Step> {
    const { fleet, http } = this.#options;
    const newest = await openAccess(fleet, http, this.#runId);
    if (newest !== null && !isSameAccess(newest, access)) {
      this.#access = newest;
      return 'more';
    }
    const { leaseId } = access.credential;
    switch (await runHold(fleet, this.#runId, leaseId)) {
      case 'lost':
        return this.#park(access, 'the lease of its run was lost', answer);
      case 'awaited':
        this.#log.debug({ status }, 'rows of an earlier attempt wait for the run lease of the next one');
        return { retryInMs: AWAIT_ATTEMPT_MS };
      case 'nobody':
        if (this.#leaseTaken !== leaseId) return this.#takeLease(access);
        break;
      case 'held':
      case 'other':
        break;
    }
    return this.#refused(access, status, answer);
  }

  /** A refusal may pass too, and giving the run up means that it is executed again. */
  async #refused(access: RunAccess, status: number, answer: string): Promise<Step> {
    const waitMs = this.#options.backOff.refused(this.#runId);
    if (waitMs === null)
      return this.#park(access, `the control plane refuses the run's token (${status})`, answer);
    this.#log.warn({ status, answer }, "the control plane refuses the run's token; asking again");
    return { retryInMs: waitMs };
  }

  /** Takes the run lease under which the finalize of an earlier claim can be sent. */
  async #takeLease(access: RunAccess): Promise<Step> {
    const { leaseId, workerId } = access.credential;
    const claim = await access.client.claim({ workerId, leaseSeconds: RUN_LEASE_SECONDS, signal: this.#cut });
    switch (claim.outcome) {
      case 'claimed':
        this.#leaseTaken = leaseId;
        return 'more';
      case 'held':
        return this.#park(access, 'another holds the lease of its run');
      case 'refused':
        return this.#refused(access, claim.status, claim.body);
      case 'failed':
        return claim.error.code === 'PLATFORM_ABORTED' ? 'yield' : this.#later(access, claim.error);
    }
  }

  /** Keeps the lane, and lets both leases go: then the platform gives the run to somebody who may speak for it. */
  async #park(access: RunAccess | null, why: string, answer?: string): Promise<Step> {
    const { lanes, runStates } = this.#options.fleet;
    const leaseId = access?.credential.leaseId ?? null;
    // First the leases: a crash in between leaves a lane that is tried, and parked, again.
    if (leaseId !== null) await runStates.markLeaseLost(this.#runId, leaseId);
    if ((await lanes.park(this.#runId, { leaseId, why }, Date.now())) === 'superseded') {
      this.#access = null;
      return 'more';
    }
    this.#options.counts.lanesParked += 1;
    this.#log.error({ why, answer }, 'a lane is parked: it is kept, but nobody may ship it');
    return 'drained';
  }

  #later(access: RunAccess, error: PlatformError): FlushOutcome {
    return { retryInMs: this.#options.backOff.failed(access.credential.baseUrl, this.#runId, error) };
  }
}
