// Rows folded into what a viewer shows of each turn (protocol/events.md 7), text that a reset voids taken back. Guards
// against text shown twice (P49) and against a reset that takes too much. It trusts no row: a late, repeated or odd one
// is ignored, never an exception. Run-level events belong to whoever shows them; here they only close open turns.

import { isRecord, type UnknownRecord } from './json.js';
import { TurnFold } from './turnFold.js';
import type { FoldedTurn, ResetReading } from './turnFold.js';

export type { FoldedItem, FoldedTurn, ResetReading, TurnEnd } from './turnFold.js';

/** A row; `event` as `parseRunEventLenient` gave it (null: skipped there). */
export interface FoldRow {
  readonly cursor: number;
  readonly event: unknown;
}

export type FoldEffect =
  /** Late, repeated, or not a row. */
  | { readonly effect: 'ignored' }
  | { readonly effect: 'applied' }
  /** A reset: so much that was on screen is void. */
  | {
      readonly effect: 'reset';
      readonly turnId: string;
      readonly textChars: number;
      readonly reasoningChars: number;
    };

export interface RunFoldOptions {
  /** Default `current-call`, the reading of protocol/events.md 7.1. */
  readonly reading?: ResetReading;
}

/** Folds rows of one run, given in the order of their cursors. */
export class RunFold {
  readonly #reading: ResetReading;
  readonly #turns = new Map<string, TurnFold>();
  #last = 0;

  constructor({ reading = 'current-call' }: RunFoldOptions = {}) {
    this.#reading = reading;
  }

  /** Turns by id, in the order in which they were first seen. */
  get turns(): ReadonlyMap<string, FoldedTurn> {
    return this.#turns;
  }

  /** Cursor of the last row that was not ignored; 0 at the start. */
  get lastCursor(): number {
    return this.#last;
  }

  apply(row: FoldRow): FoldEffect {
    if (!Number.isSafeInteger(row.cursor) || row.cursor <= this.#last) return IGNORED;
    this.#last = row.cursor;
    if (!isRecord(row.event)) return APPLIED;
    const { turnId, kind } = row.event;
    if (typeof turnId !== 'string' || typeof kind !== 'string') return APPLIED;
    if (kind === 'run_status') this.#closeTurns(row.event);
    else if (TurnFold.folds(kind)) return this.#applyToTurn(turnId, kind, row.event);
    return APPLIED;
  }

  #applyToTurn(turnId: string, kind: string, event: UnknownRecord): FoldEffect {
    let turn = this.#turns.get(turnId);
    if (turn === undefined || kind === 'turn_started') {
      turn = new TurnFold(turnId, this.#reading);
      this.#turns.set(turnId, turn);
    }
    const voided = turn.apply(kind, event);
    return voided === null ? APPLIED : { effect: 'reset', turnId, ...voided };
  }

  /** A turn whose end never came: the next attempt has begun, or the run is over (protocol/events.md 7.4). */
  #closeTurns(event: UnknownRecord): void {
    const status = event['status'];
    if (typeof status !== 'string' || !CLOSING_STATUSES.has(status)) return;
    for (const turn of this.#turns.values()) turn.interrupt();
  }
}

/** Rows in any order, repeated ones once (the first counts), folded. */
export function foldRows(rows: Iterable<FoldRow>, options: RunFoldOptions = {}): RunFold {
  const fold = new RunFold(options);
  for (const row of [...rows].sort((a, b) => a.cursor - b.cursor)) fold.apply(row);
  return fold;
}

const IGNORED: FoldEffect = { effect: 'ignored' };
const APPLIED: FoldEffect = { effect: 'applied' };
const CLOSING_STATUSES: ReadonlySet<string> = new Set(['running', 'completed', 'failed', 'cancelled']);
