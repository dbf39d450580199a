// What `dev` prints of its runs: rows as JSON lines for a program, or the live view for a person. Guards against a row
// that is stored and never printed: one that comes out of its turn waits for those before it, at the latest for the end.

import { splitCursor } from '../contract/cursors.js';
import { parseRunEventLenient } from '../contract/events.js';
import type { RunView, StoredRow } from '../dev/controlPlane/controlPlane.js';
import { failureText, oneLine } from '../dev/liveLines.js';
import { LiveView } from '../dev/liveView.js';

const COMMON_COLUMNS = 80;

export interface ShownRows {
  row(runId: string, row: StoredRow): void;
  end(runId: string, view: RunView, rows: readonly StoredRow[]): void;
}

export type ShownView = Pick<
  RunView,
  'status' | 'output' | 'error' | 'queued_at' | 'claimed_at' | 'first_event_at' | 'finalized_at'
>;

type Write = (text: string) => void;

/** Rows as they were stored, in rising order of their cursors, one a line, then the result. */
export class JsonRows {
  readonly #write: Write;
  readonly #printed = new Map<string, Set<number>>();
  /** Runs of which a row has come before one that belongs in front of it: the rest is printed at their end. */
  readonly #held = new Set<string>();
  readonly #last = new Map<string, number>();

  constructor(write: Write) {
    this.#write = write;
  }

  row(runId: string, row: StoredRow): void {
    if (this.#held.has(runId)) return;
    if (follows(this.#last.get(runId) ?? 0, row.cursor)) this.#print(runId, row);
    else this.#held.add(runId);
  }

  end(runId: string, { status, output, error }: ShownView, rows: readonly StoredRow[]): void {
    for (const row of rows) if (this.#printed.get(runId)?.has(row.cursor) !== true) this.#print(runId, row);
    this.#write(`${JSON.stringify({ result: { status, output, error } })}\n`);
  }

  #print(runId: string, { cursor, event }: StoredRow): void {
    const printed = this.#printed.get(runId) ?? new Set();
    this.#printed.set(runId, printed.add(cursor));
    this.#last.set(runId, cursor);
    this.#write(`${JSON.stringify({ cursor, event })}\n`);
  }
}

/** The next row of the same block, or the first of a later one (protocol/events.md 2). */
function follows(last: number, cursor: number): boolean {
  return cursor === last + 1 || (cursor > last && splitCursor(cursor).seq === 1);
}

/** One run in full; of several, how each ends. */
export class LiveRows {
  readonly #view: LiveView;
  readonly #single: boolean;

  constructor(write: Write, options: { readonly columns: number | null; readonly runs: number }) {
    this.#single = options.runs === 1;
    this.#view = new LiveView({ write, columns: options.columns });
  }

  row(_runId: string, row: StoredRow): void {
    if (!this.#single) return;
    const event = parseRunEventLenient(row.event);
    if (event !== null) this.#view.show({ cursor: row.cursor, event });
  }

  end(runId: string, view: ShownView): void {
    const { queued_at: queued, claimed_at: claimed, first_event_at: first, finalized_at: finalized } = view;
    const since = (at: number | null): string => (at === null ? '-' : `${at - queued} ms`);
    this.#view.note(
      `${runId} ${view.status}: claimed after ${since(claimed)}, first event ${since(first)}, end ${since(finalized)}`,
    );
    // The rows of a single run have said it.
    if (!this.#single && view.error !== null) this.#view.note(`  error: ${failureText(view.error)}`);
    if (!this.#single && view.status === 'completed')
      this.#view.note(`  output: ${oneLine(JSON.stringify(view.output ?? null))}`);
    if (view.error?.hint !== undefined) this.#view.note(`  ${oneLine(view.error.hint)}`);
  }
}

/** How wide a terminal is; null: it is none. Some don't know, and say 0. */
export function columnsOf(stream: { readonly isTTY?: boolean; readonly columns?: number }): number | null {
  if (stream.isTTY !== true) return null;
  return stream.columns === undefined || stream.columns < 1 ? COMMON_COLUMNS : stream.columns;
}
