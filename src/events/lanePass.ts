// One flush of one lane: its head to the platform, batch after batch, and the finalize behind the last row. It guards
// the order: one call at a time, and nothing leaves the lane before the platform has taken it. When to come back is the
// queue's business, what an answer means is decided here (design sections 6 and 9).

import type { Logger } from 'pino';
import type { PlatformHttp } from '../platform/http.js';
import { RunClient } from '../platform/runClient.js';
import type { Fleet, FlushContext, FlushOutcome, LaneEntry, RunCredential } from '../queue/fleet.js';
import { BatchSize, MOST_BYTES, MOST_ROWS, nextBatch, type Row } from './batch.js';
import { sendFinalize } from './finalizeRun.js';

/** After so much, a lane gives its place to others that wait. */
const TURN_BATCHES = 32;
const TURN_MS = 250;

export interface LanePassDependencies {
  readonly fleet: Pick<Fleet, 'lanes' | 'credentials' | 'runStates'>;
  readonly http: PlatformHttp;
  readonly log: Logger;
  /** The platform has taken something. */
  readonly onAccepted: (rows: number) => void;
  /** The platform can't be reached, or says "later". */
  readonly onUnreachable: () => void;
  /** A row or a lane that will not reach the platform, or not for now. */
  readonly onLost: (rows: number) => void;
  readonly now: () => number;
}

type Step = 'sent' | FlushOutcome;

export class LanePass {
  readonly #deps: LanePassDependencies;
  readonly #runId: string;
  readonly #context: FlushContext;
  readonly #log: Logger;
  readonly #size = new BatchSize();
  #credential: RunCredential | null = null;

  constructor(deps: LanePassDependencies, runId: string, context: FlushContext) {
    this.#deps = deps;
    this.#runId = runId;
    this.#context = context;
    this.#log = deps.log.child({ run: runId });
  }

  async run(): Promise<FlushOutcome> {
    const { fleet } = this.#deps;
    const began = performance.now();
    this.#credential = await fleet.credentials.run(this.#runId);
    for (let calls = 0; !this.#context.signal.aborted; calls += 1) {
      if (calls >= TURN_BATCHES || performance.now() - began >= TURN_MS) {
        if (await this.#context.othersWaiting()) return 'yield';
      }
      const head = await fleet.lanes.head(this.#runId, {
        maxRows: Math.min(MOST_ROWS, this.#size.rows),
        maxBytes: MOST_BYTES,
      });
      if (head.length === 0) return 'drained';
      if (this.#credential === null) return this.#giveUp();
      const step = await this.#ship(head, this.#credential);
      if (step !== 'sent') return step;
    }
    // Not ours any more, or the worker stops: whoever holds the lane next begins at its head.
    return 'yield';
  }

  #ship(head: readonly LaneEntry[], credential: RunCredential): Promise<Step> {
    const [first] = head;
    if (first?.kind === 'finalize') return this.#finalize(first.body, credential);
    return this.#rows(nextBatch(head, this.#size.rows), credential);
  }

  async #rows(batch: readonly Row[], credential: RunCredential): Promise<Step> {
    const { fleet, http, onAccepted } = this.#deps;
    const client = new RunClient(http, credential);
    const frames = batch.map((row) => row.frame);
    const answer = await client.telemetry(frames, { signal: this.#context.signal });
    switch (answer.outcome) {
      case 'accepted': {
        onAccepted(batch.length);
        this.#size.accepted();
        const last = batch.at(-1);
        if (last === undefined) return 'sent';
        return (await fleet.lanes.trim(this.#runId, last.id)).left === 0 ? 'drained' : 'sent';
      }
      case 'refused':
        return this.#refused(batch, answer);
      case 'failed':
        return this.#later(answer.error);
    }
  }

  async #refused(
    batch: readonly Row[],
    answer: { readonly status: number; readonly body: string },
  ): Promise<Step> {
    const { fleet, onLost, now } = this.#deps;
    if (isTokenTrouble(answer.status)) return this.#anotherToken(answer.status);
    if (answer.status !== 400 && answer.status !== 413) {
      this.#log.warn({ status: answer.status, answer: answer.body }, 'rows refused, trying again');
      return 'retry';
    }
    const [row, second] = batch;
    if (second !== undefined || row === undefined) {
      this.#size.refused(batch.length);
      return 'sent';
    }
    await fleet.lanes.setAside(this.#runId, row, { status: answer.status, body: answer.body }, now());
    onLost(1);
    this.#log.error(
      { cursor: row.cursor, status: answer.status, answer: answer.body },
      'a row is refused by the control plane and set aside',
    );
    return (await fleet.lanes.trim(this.#runId, row.id)).left === 0 ? 'drained' : 'sent';
  }

  async #finalize(body: string, credential: RunCredential): Promise<Step> {
    const { fleet, http, onAccepted } = this.#deps;
    const sent = await sendFinalize(
      new RunClient(http, credential),
      body,
      credential.workerId,
      this.#context.signal,
    );
    switch (sent.outcome) {
      case 'ended': {
        if (sent.answer === 'acknowledged') onAccepted(0);
        if (sent.answer !== 'acknowledged')
          this.#log.warn({ answer: sent.answer, status: sent.status }, 'finalize');
        const { status, answer } = sent;
        const finished = await fleet.runStates.finish(this.#runId, credential.leaseId, { status, answer });
        // A newer claim has come while we spoke: it finds the finalize in the lane and has it sent in its own name.
        return finished === 'finished' ? 'drained' : 'retry';
      }
      case 'token':
        return this.#anotherToken(sent.status);
      case 'failed':
        return this.#later(sent.error);
    }
  }

  /** A newer claim's token may be good; without one nothing of this lane can be sent for now. */
  async #anotherToken(status: number): Promise<Step> {
    const { fleet, onLost, now } = this.#deps;
    const former = this.#credential;
    this.#credential = await fleet.credentials.run(this.#runId);
    if (former === null || this.#credential === null) return 'sent';
    if (this.#credential.leaseId !== former.leaseId) return 'sent';
    const { rows } = await fleet.lanes.size(this.#runId);
    await fleet.lanes.park(this.#runId, `the control plane refuses the run token (${status})`, now());
    await fleet.runStates.markLeaseLost(this.#runId, former.leaseId);
    onLost(rows);
    this.#log.error(
      { status, rows },
      'the run token is refused: the lane is parked and both leases are let go',
    );
    return 'drained';
  }

  /** There is no credential any more: the claim was given up long ago, and nobody can speak for it. */
  async #giveUp(): Promise<FlushOutcome> {
    const { fleet, onLost } = this.#deps;
    const { rows } = await fleet.lanes.size(this.#runId);
    await fleet.lanes.remove(this.#runId);
    onLost(rows);
    this.#log.error(
      { rows },
      'rows without a credential are given up: the claim that they belong to is gone',
    );
    return 'drained';
  }

  #later(error: Error): Step {
    if (this.#context.signal.aborted) return 'yield';
    this.#deps.onUnreachable();
    this.#log.warn({ err: error, tries: this.#context.attempt }, 'lane not shipped, trying again');
    return 'retry';
  }
}

function isTokenTrouble(status: number): boolean {
  return status === 401 || status === 403 || status === 404;
}
