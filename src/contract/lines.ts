// Bytes of a stream cut into lines, for every wire that says one JSON object a line. Guards against a UTF-8 sequence
// split over chunks (bytes are joined before they are decoded), and against a line that never ends and fills the
// memory. What a line means is the caller's.

/** 64 MiB: no honest line of the protocol comes near (protocol/inference.md 4). */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** A line is longer than the bound. The stream can't be read on. */
export class LineTooLongError extends Error {
  override readonly name = 'LineTooLongError';
}

/**
 * Collects chunks and yields complete lines, trimmed (blank ones are left out). Invalid UTF-8 becomes U+FFFD.
 * Consume what `push` yields before the next `push`; a chunk must not be changed after it was pushed.
 */
export class LineReader {
  readonly #maxBytes: number;
  #parts: Uint8Array[] = [];
  #bytes = 0;

  constructor({ maxBytes = MAX_LINE_BYTES }: { readonly maxBytes?: number } = {}) {
    this.#maxBytes = maxBytes;
  }

  /** @throws LineTooLongError */
  *push(chunk: Uint8Array): Generator<string> {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(LINE_FEED, start);
      if (end === -1) break;
      this.#keep(chunk.subarray(start, end));
      start = end + 1;
      yield* this.end();
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  /** The rest of a stream that ended: its last line need not be terminated. */
  *end(): Generator<string> {
    const [only] = this.#parts;
    if (only === undefined) return;
    const bytes = this.#parts.length === 1 ? only : Buffer.concat(this.#parts, this.#bytes);
    this.#parts = [];
    this.#bytes = 0;
    // trim() takes a byte order mark and no-break spaces too, which the wire's rules call for.
    const line = decoder.decode(bytes).trim();
    if (line !== '') yield line;
  }

  #keep(part: Uint8Array): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#maxBytes)
      throw new LineTooLongError(`a line is longer than ${this.#maxBytes} bytes`);
    this.#parts.push(part);
  }
}

const LINE_FEED = 0x0a;
const decoder = new TextDecoder();
