// What the program prints, as rows: one a console call, one a line of its raw pipes (protocol/events.md 5). It guards
// against secrets in print, also ones written in pieces or over several lines (R16), and against a program that prints
// without end: lines and rows are bounded, and the pipes wait while too much is on its way.

import { StringDecoder } from 'node:string_decoder';
import type { Readable } from 'node:stream';
import { HoldBack } from '../redaction/holdBack.js';
import { redact } from '../redaction/redact.js';
import type { SecretSet } from '../redaction/secretSet.js';
import type { EventBody } from './eventStream.js';
import { cut } from './runFailure.js';

/** protocol/events.md 5. */
const ROW_CHARS = 8_192;
const MAX_ROWS = 10_000;
const CUT_MARK = '… (truncated)';
const NOTICE = `[boardwalk] The program has printed ${MAX_ROWS} lines; further output is not recorded.`;
/** Of stderr, for the error of a program that ends without a word. */
const KEPT_STDERR_LINES = 20;

type OutputStream = 'stdout' | 'stderr';

export interface ProgramOutputOptions {
  readonly secrets: SecretSet;
  readonly emit: (event: EventBody) => void;
  /** Resolves when rows may be made again. */
  readonly room: () => Promise<void>;
}

export class ProgramOutput {
  readonly #options: ProgramOutputOptions;
  #rows = 0;
  #lastStderr: string[] = [];
  #hurry: () => void = () => undefined;
  readonly #hurried: Promise<void>;

  constructor(options: ProgramOutputOptions) {
    this.#options = options;
    this.#hurried = new Promise((resolve) => {
      this.#hurry = resolve;
    });
  }

  /** The program is gone: what it left is little, and is taken without waiting for room. */
  hurry(): void {
    this.#hurry();
  }

  /** One console call. `isCut`: the sender left the rest of the text out. Resolves when the next one may come. */
  async console(stream: OutputStream, text: string, isCut: boolean): Promise<void> {
    const { secrets } = this.#options;
    // Of a text that was cut, the end may be the beginning of a secret.
    this.#row(stream, isCut ? `${new HoldBack(secrets).push(text)}${CUT_MARK}` : redact(text, secrets));
    await this.#room();
  }

  /** A raw pipe until its end; every line is a row. Never rejects. */
  async pipe(stream: OutputStream, source: Readable): Promise<void> {
    const lines = new PipedLines(this.#options.secrets, (line) => this.#row(stream, line));
    const decoder = new StringDecoder('utf8');
    try {
      for await (const chunk of source as AsyncIterable<Buffer>) {
        lines.push(decoder.write(chunk));
        await this.#room();
      }
    } catch {
      // A pipe that breaks has ended.
    }
    lines.end(decoder.end());
  }

  /** The last line on stderr that is not blank. */
  get lastStderrLine(): string | undefined {
    return this.#lastStderr.findLast((line) => line.trim() !== '');
  }

  #room(): Promise<void> {
    return Promise.race([this.#options.room(), this.#hurried]);
  }

  #row(stream: OutputStream, text: string): void {
    if (stream === 'stderr') this.#lastStderr = [...this.#lastStderr, text].slice(-KEPT_STDERR_LINES);
    this.#rows += 1;
    if (this.#rows <= MAX_ROWS) {
      this.#options.emit({ kind: 'program_output', stream, text: cut(text, ROW_CHARS, CUT_MARK) });
    } else if (this.#rows === MAX_ROWS + 1) {
      this.#options.emit({ kind: 'program_output', stream: 'stderr', text: NOTICE });
    }
  }
}

/** Text cut into lines, redacted before it is cut: a secret may have line breaks in it. */
class PipedLines {
  readonly #holdBack: HoldBack;
  readonly #onLine: (line: string) => void;
  #line = '';

  constructor(secrets: SecretSet, onLine: (line: string) => void) {
    this.#holdBack = new HoldBack(secrets);
    this.#onLine = onLine;
  }

  push(text: string): void {
    this.#take(this.#holdBack.push(text));
  }

  end(rest: string): void {
    this.push(rest);
    this.#take(this.#holdBack.flush());
    if (this.#line !== '') this.#give();
  }

  #take(text: string): void {
    let from = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      this.#append(text.slice(from, end));
      this.#give();
      from = end + 1;
    }
    this.#append(text.slice(from));
  }

  #append(text: string): void {
    // One character more than a row takes shows that the line goes on; the rest of it isn't kept.
    this.#line += text.slice(0, Math.max(0, ROW_CHARS + 1 - this.#line.length));
  }

  #give(): void {
    const line = this.#line.replace(/\r$/, '');
    this.#line = '';
    this.#onLine(line);
  }
}
