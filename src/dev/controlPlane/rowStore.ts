// The rows of one run. The first write of a cursor wins, whatever comes later and in whichever order; what should not
// have happened (a row twice, a row below one that is already there) is counted and not repaired, because finding it is
// what the counts are for (protocol/events.md 2.1, 7.4).

import { makeCursor, nextBlockAfter } from '../../contract/cursors.js';
import type { EventError, RunStatus } from '../../contract/events.js';
import type { UnknownRecord } from '../../contract/json.js';

/** An event as it was received, of a kind that we know or not. */
export type StoredEvent = UnknownRecord & { readonly kind: string };

export interface StoredRow {
  readonly cursor: number;
  readonly event: StoredEvent;
}

export type RowArrival = 'stored' | 'regressed' | 'duplicate';

export class RowStore {
  readonly #byCursor = new Map<number, StoredRow>();
  #highest = 0;
  #sorted: StoredRow[] | null = null;

  /** The highest cursor; 0 when there is no row. */
  get lastCursor(): number {
    return this.#highest;
  }

  get size(): number {
    return this.#byCursor.size;
  }

  /** `regressed`: stored, below a cursor that had arrived before. `duplicate`: not stored. */
  add(row: StoredRow): RowArrival {
    if (this.#byCursor.has(row.cursor)) return 'duplicate';
    this.#byCursor.set(row.cursor, row);
    if (row.cursor < this.#highest) {
      this.#sorted = null;
      return 'regressed';
    }
    this.#highest = row.cursor;
    this.#sorted?.push(row);
    return 'stored';
  }

  /**
   * A row of the control plane's own, in a block that no process has used. Only while no process holds the run: the
   * process counts on from what it was told at its claim.
   */
  addStatus(runId: string, status: RunStatus, error: EventError | null): StoredRow {
    const seq = 1;
    const cursor = makeCursor(nextBlockAfter(this.#highest), seq);
    const envelope = { runId, turnId: runId, seq, t: Date.now(), kind: 'run_status' };
    const row = { cursor, event: { ...envelope, status, ...(error === null ? {} : { error }) } };
    this.add(row);
    return row;
  }

  /** All of them, in the order of their cursors. */
  inOrder(): readonly StoredRow[] {
    this.#sorted ??= [...this.#byCursor.values()].sort((a, b) => a.cursor - b.cursor);
    return this.#sorted;
  }
}
