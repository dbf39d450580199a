// How much of a lane goes into the next batch. It guards against a request that the platform must refuse for its size,
// and against one bad row that holds up all behind it (P50): after a refusal the batch is halved until that row is
// alone. Pure; what becomes of the row is the drain's.

/** A row as far as its place in a batch is concerned. */
export interface Sized {
  /** JSON text of the row. */
  readonly frame: string;
  /** Its length in UTF-8. */
  readonly bytes: number;
}

/** Around the frames: `{"frames":[` and `]}`. */
const BODY_BYTES = 13;
/** A control character takes the most: one byte becomes `\u0000`. */
const WORST_GROWTH = 6;
const QUOTES_AND_COMMA = 3;

/**
 * How many of the first rows fit into one body; at least one when there are any. A row that is too large even alone is
 * the platform's to refuse, so that its answer is on record.
 *
 * @param maxBodyBytes of the encoded body: each frame is a JSON string in it, so quotes and backslashes count twice.
 */
export function fitting(rows: readonly Sized[], maxBodyBytes: number): number {
  const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
  // Most batches are far below the bound, however their characters are escaped.
  if (BODY_BYTES + bytes * WORST_GROWTH + rows.length * QUOTES_AND_COMMA <= maxBodyBytes) return rows.length;
  let body = BODY_BYTES;
  for (const [index, { frame }] of rows.entries()) {
    body += Buffer.byteLength(JSON.stringify(frame)) + (index === 0 ? 0 : 1);
    if (body > maxBodyBytes) return Math.max(1, index);
  }
  return rows.length;
}

/**
 * The search for a row that is refused. Its suspects are the first rows of the lane; every answer leaves fewer: a
 * refused half has it, an accepted half clears itself and leaves the others.
 */
export class Suspects {
  #count = 0;

  /** The most rows that the next batch may have. */
  most(maxRows: number): number {
    return this.#count === 0 ? maxRows : Math.min(maxRows, Math.max(1, Math.floor(this.#count / 2)));
  }

  /** The first `rows` rows of the lane were refused together. `alone`: that is the row, and the search is over. */
  refused(rows: number): 'narrowed' | 'alone' {
    this.#count = rows <= 1 ? 0 : rows;
    return rows <= 1 ? 'alone' : 'narrowed';
  }

  /** The first `rows` rows of the lane were accepted, and are off it. */
  accepted(rows: number): void {
    this.#count = Math.max(0, this.#count - rows);
  }
}
