// How much of a lane goes into the next batch. It guards against a request that the platform must refuse for its size,
// and against one bad row that holds up all behind it (P50): after a refusal the batch is halved until that row is
// alone. Pure; what becomes of the row is the pass's.

import type { LaneEntry } from '../queue/fleet.js';

export type Row = Extract<LaneEntry, { readonly kind: 'row' }>;

export const MOST_ROWS = 1_000;
/** Of the encoded body; the platform takes 5 MiB (design section 9). */
export const MOST_BYTES = 4.5 * 1024 * 1024;
/** Around the frames: `{"frames":[` and `]}`. */
const BODY_BYTES = 13;

/** The first rows of the head that go together: at most `most`, and within the body's bound; one in any case. */
export function nextBatch(head: readonly LaneEntry[], most: number): readonly Row[] {
  const batch: Row[] = [];
  let body = BODY_BYTES;
  for (const entry of head) {
    if (entry.kind !== 'row' || batch.length >= most) break;
    // A frame is a JSON string in the body: quotes and backslashes count twice. One more for the comma.
    body += Buffer.byteLength(JSON.stringify(entry.frame)) + 1;
    if (body > MOST_BYTES && batch.length > 0) break;
    batch.push(entry);
  }
  return batch;
}

/** How many rows the next batch may have: halved by a refusal, doubled again by what is taken. */
export class BatchSize {
  #rows = MOST_ROWS;

  get rows(): number {
    return this.#rows;
  }

  accepted(): void {
    this.#rows = Math.min(MOST_ROWS, this.#rows * 2);
  }

  /** A batch of so many rows was refused. */
  refused(rows: number): void {
    this.#rows = Math.max(1, Math.floor(rows / 2));
  }
}
