// A control plane in one process, for `dev`, demos and tests: the server side of protocol/pool.md, run-control.md and
// inference.md, with a scripted model and an admin API. It is a separate, honest implementation: leases end, claims are
// lost, stale attempts are refused. Its state lives in memory, and it serves this machine only.

import { OperatorError } from '../../contract/operatorError.js';
import { adminRoutes } from './adminRoutes.js';
import { Assignments } from './assignments.js';
import { HttpServer } from './httpServer.js';
import { poolRoutes } from './poolRoutes.js';
import { Programs } from './programs.js';
import { Router } from './router.js';
import type { StoredRow } from './rowStore.js';
import { viewOf, type Run, type RunView } from './run.js';
import { LATE_ROWS_MS, RunLeases } from './runLeases.js';
import { runRoutes } from './runRoutes.js';
import { planOf, type RunsSpec } from './runSpec.js';
import { Runners } from './runners.js';
import { Runs, type RowListener } from './runs.js';
import { Tally, type Report } from './tally.js';
import { newToken } from './tokens.js';

export type { Report } from './tally.js';
export type { RowListener } from './runs.js';
export type { RunState, RunView } from './run.js';
export type { ArchiveSpec, RunsSpec, SourceSpec } from './runSpec.js';
export type { StoredEvent, StoredRow } from './rowStore.js';

export interface ControlPlaneOptions {
  /** Default 0: any free one. */
  readonly port?: number | undefined;
  /** Of the registration tokens and of runs that name none. Default `default`. */
  readonly pool?: string | undefined;
  /** How long an empty poll is held. Default 22 s (protocol/pool.md 5). */
  readonly pollHoldMs?: number | undefined;
  /** Of an assignment, and the most of a run. Default 300 s. */
  readonly leaseMs?: number | undefined;
  /** How long an offer waits for its claim. Default 10 s. */
  readonly offerMs?: number | undefined;
  /** How long after its finalize an attempt may still send rows. Default 60 s. */
  readonly lateRowsMs?: number | undefined;
}

export interface ControlPlaneAddress {
  readonly url: string;
  /** Good once, for an hour; `invite` and the admin API make more. */
  readonly registrationToken: string;
  readonly adminToken: string;
}

export class ControlPlane {
  readonly #pool: string;
  readonly #adminToken = newToken('bwkadm');
  readonly #tally = new Tally();
  readonly #runners = new Runners();
  readonly #programs = new Programs();
  readonly #runs = new Runs(this.#tally);
  readonly #server: HttpServer;
  #address: ControlPlaneAddress | null = null;
  #starting: Promise<ControlPlaneAddress> | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: ControlPlaneOptions = {}) {
    const { port = 0, pool = 'default', leaseMs = 300_000 } = options;
    const { pollHoldMs = 22_000, offerMs = 10_000, lateRowsMs = LATE_ROWS_MS } = options;
    this.#pool = pool;
    const [runners, runs, programs, tally] = [this.#runners, this.#runs, this.#programs, this.#tally];
    const assignments = new Assignments(runs, { leaseMs, offerMs, pollHoldMs });
    const runLeases = new RunLeases(runs, tally, { leaseMs, lateRowsMs });
    const url = (): string => this.#address?.url ?? '';
    const createRuns = (spec: RunsSpec): string[] => this.createRuns(spec);
    const router = new Router([
      ...poolRoutes({ runners, runs, assignments, runLeases, url }),
      ...runRoutes({ runLeases, programs, url }),
      ...adminRoutes({ adminToken: this.#adminToken, pool, runners, runs, tally, createRuns }),
    ]);
    const onAnswer = tally.answered.bind(tally);
    this.#server = new HttpServer({ port, router, onAnswer });
  }

  /** @throws OperatorError `PORT_UNAVAILABLE` */
  start(): Promise<ControlPlaneAddress> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  /** Ends held polls, streams and leases, and closes every connection; takes a second at most. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  /** A new registration token. */
  invite(): string {
    return this.#runners.invite(this.#pool);
  }

  /** Makes runs that are ready at once. @returns their ids. @throws OperatorError `SCRIPT_INVALID` */
  createRuns(spec: RunsSpec): string[] {
    const plan = planOf(spec, this.#programs, this.#pool);
    return Array.from({ length: spec.count ?? 1 }, () => this.#runs.create(plan).id);
  }

  /** @throws OperatorError `RUN_UNKNOWN` */
  run(runId: string): RunView {
    return viewOf(this.#known(runId));
  }

  /** In the order of their cursors. @throws OperatorError `RUN_UNKNOWN` */
  rows(runId: string): readonly StoredRow[] {
    return this.#known(runId).rows.inOrder();
  }

  /** Each row of every run, once and at once, when it is stored. @returns how to stop listening */
  onRow(listener: RowListener): () => void {
    return this.#runs.onRow(listener);
  }

  /** Rejects when the control plane is stopped first. @throws OperatorError `RUN_UNKNOWN` */
  whenDone(runId: string): Promise<RunView> {
    return this.#runs.whenDone(this.#known(runId));
  }

  /** A run that nobody has is over at once, another is asked to stop. @throws OperatorError `RUN_UNKNOWN` */
  cancel(runId: string): void {
    this.#runs.cancel(this.#known(runId));
  }

  report(): Report {
    return this.#tally.report();
  }

  async #start(): Promise<ControlPlaneAddress> {
    const url = await this.#server.start();
    this.#address = { url, registrationToken: this.invite(), adminToken: this.#adminToken };
    return this.#address;
  }

  async #stop(): Promise<void> {
    // A start that failed has left nothing; one under way is waited for, so that its server is closed too.
    await this.#starting?.catch(() => undefined);
    // First the server, so that the polls that end now are answered with the end of their connection.
    const closed = this.#server.stop();
    this.#runs.stop();
    await closed;
  }

  #known(runId: string): Run {
    const run = this.#runs.get(runId);
    if (run !== undefined) return run;
    throw new OperatorError('RUN_UNKNOWN', 'The control plane has no run with this id.');
  }
}
