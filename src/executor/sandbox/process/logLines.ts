// Turns what a process writes into lines that a log can take: bounded in length and memory whatever is written, a
// last line without its end included, bytes that are no text replaced. Nothing is redacted here: a runtime's own
// output is for the operator, and the caller knows the secrets.

import { StringDecoder } from 'node:string_decoder';

/** Longest line that is kept whole, in UTF-16 units; log collectors commonly cut at 16 KiB of encoded line. */
export const MAX_LINE_LENGTH = 8_192;

export class LogLines {
  readonly #decoder = new StringDecoder('utf8');
  readonly #onLine: (line: string) => void;
  #kept = '';
  #dropped = 0;

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(chunk: Buffer): void {
    this.#take(this.#decoder.write(chunk));
  }

  /** The stream has ended: what is left is a line too. */
  end(): void {
    this.#take(this.#decoder.end());
    if (this.#kept !== '') this.#emit();
  }

  #take(text: string): void {
    let from = 0;
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', from)) {
      this.#keep(text, from, at);
      this.#emit();
      from = at + 1;
    }
    this.#keep(text, from, text.length);
  }

  #keep(text: string, from: number, to: number): void {
    const room = Math.min(to - from, MAX_LINE_LENGTH - this.#kept.length);
    if (room > 0) this.#kept += text.slice(from, from + room);
    this.#dropped += to - from - Math.max(room, 0);
  }

  #emit(): void {
    const line = this.#kept.endsWith('\r') ? this.#kept.slice(0, -1) : this.#kept;
    const note = this.#dropped === 0 ? '' : ` … (${this.#dropped} more characters)`;
    this.#kept = '';
    this.#dropped = 0;
    this.#onLine(line + note);
  }
}
