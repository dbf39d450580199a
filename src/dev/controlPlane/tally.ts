// What happened, in numbers: the report that tests and benchmarks judge a fleet by. Every figure is kept while things
// happen, so that reading it costs nothing and can't miss anything.

import type { RunStatus } from '../../contract/events.js';

export interface Report {
  /** Runs by their present status; a status that no run has is absent. */
  readonly by_status: Readonly<Partial<Record<RunStatus, number>>>;
  /**
   * Runs that somebody tried to end a second time: after the accepted finalize came another one that was no repeat of
   * it (of another attempt or worker, with another status, or with another output). The first one stood in any case.
   */
  readonly double_finalized: number;
  /** Rows that came after a row of the same run with a higher cursor. They are stored. */
  readonly cursor_regressions: number;
  /** Rows whose cursor was stored already. They are not stored. */
  readonly duplicate_rows: number;
  /** Leases, of an assignment or of a run, that ran out. */
  readonly expired_leases: number;
  /** By `METHOD /path` and status; `aborted` when the client hung up first. */
  readonly requests: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export class Tally {
  readonly #byStatus = new Map<RunStatus, number>();
  readonly #requests = new Map<string, Map<string, number>>();
  doubleFinalized = 0;
  cursorRegressions = 0;
  duplicateRows = 0;
  expiredLeases = 0;

  /** `null`: the run is new. */
  moved(from: RunStatus | null, to: RunStatus): void {
    if (from !== null) increase(this.#byStatus, from, -1);
    increase(this.#byStatus, to, 1);
  }

  answered(route: string, status: number | 'aborted'): void {
    const byStatus = this.#requests.get(route) ?? new Map<string, number>();
    this.#requests.set(route, byStatus);
    increase(byStatus, String(status), 1);
  }

  report(): Report {
    return {
      by_status: Object.fromEntries([...this.#byStatus].filter(([, runs]) => runs > 0)),
      double_finalized: this.doubleFinalized,
      cursor_regressions: this.cursorRegressions,
      duplicate_rows: this.duplicateRows,
      expired_leases: this.expiredLeases,
      requests: Object.fromEntries(
        [...this.#requests].map(([route, byStatus]) => [route, Object.fromEntries(byStatus)]),
      ),
    };
  }
}

function increase<K>(counts: Map<K, number>, key: K, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}
