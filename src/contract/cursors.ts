// The numbering of a run's rows (protocol/events.md 2): cursor = block x 1 000 000 + seq. One place for the arithmetic,
// because a cursor that collides with an earlier one is a row that the platform throws away. No state is kept here.

/** Cursors per block. */
export const STRIDE = 1_000_000;

export interface CursorParts {
  /** Integer >= 0. */
  readonly block: number;
  /** 1 .. 999 999. */
  readonly seq: number;
}

/** @throws RangeError when block is not an integer >= 0 or seq not one of 1 .. 999 999 */
export function makeCursor(block: number, seq: number): number {
  if (!Number.isInteger(block) || block < 0)
    throw new RangeError(`block must be an integer of at least 0, not ${block}`);
  if (!Number.isInteger(seq) || seq < 1 || seq >= STRIDE)
    throw new RangeError(`seq must be an integer from 1 to ${STRIDE - 1}, not ${seq}`);
  return block * STRIDE + seq;
}

/** @throws RangeError when it is no cursor; a remainder of 0 is none */
export function splitCursor(cursor: number): CursorParts {
  if (!isCursor(cursor)) throw new RangeError(`not a cursor: ${String(cursor)}`);
  return { block: Math.floor(cursor / STRIDE), seq: cursor % STRIDE };
}

export function isCursor(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 && value % STRIDE !== 0;
}

/**
 * The block in which a process starts to count, given the highest cursor stored for the run (0: nothing is stored).
 *
 * @throws RangeError when the maximum is not an integer >= 0
 */
export function nextBlockAfter(maxCursor: number): number {
  if (!Number.isSafeInteger(maxCursor) || maxCursor < 0)
    throw new RangeError(`the highest cursor must be an integer of at least 0, not ${maxCursor}`);
  return maxCursor === 0 ? 0 : Math.floor(maxCursor / STRIDE) + 1;
}
