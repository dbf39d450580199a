// JSON with comments and trailing commas, as people write `workflow.jsonc`. Guards against an error that doesn't say
// where: each names line and column, both from 1. Otherwise it takes what JSON takes: a double comma, a single quote or
// an unfinished comment is an error. A byte order mark at the start is skipped, since editors add it unasked.

import { OperatorError } from './operatorError.js';
import { setMember } from './json.js';

/** Code `JSONC_INVALID`. */
export class JsoncError extends OperatorError {
  override readonly name = 'JsoncError';
  readonly line: number;
  /** In characters, not bytes. */
  readonly column: number;

  constructor(source: string, problem: string, line: number, column: number) {
    super('JSONC_INVALID', `${source}:${line}:${column}: ${problem}`);
    this.line = line;
    this.column = column;
  }
}

/** Deeper than any file that a person wrote; a bound for the recursion. */
const MAX_DEPTH = 200;

/**
 * @param source what the text is called in errors, usually its path
 * @throws JsoncError
 */
export function parseJsonc(text: string, source = 'JSON'): unknown {
  const reader = new JsoncReader(text, source);
  return reader.document();
}

class JsoncReader {
  readonly #text: string;
  readonly #source: string;
  #at: number;

  constructor(text: string, source: string) {
    this.#text = text;
    this.#source = source;
    this.#at = text.startsWith('\uFEFF') ? 1 : 0;
  }

  document(): unknown {
    const value = this.#value(0);
    this.#skip();
    if (this.#at < this.#text.length)
      throw this.#wrong(`expected the end of the file, found ${this.#found()}`);
    return value;
  }

  #value(depth: number): unknown {
    this.#skip();
    if (depth > MAX_DEPTH) throw this.#wrong(`nested deeper than ${MAX_DEPTH} levels`);
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object(depth);
      case '[':
        return this.#array(depth);
      case '"':
        return this.#string();
      default:
        return this.#scalar();
    }
  }

  #object(depth: number): unknown {
    const object: Record<string, unknown> = {};
    this.#members('}', () => {
      if (this.#text[this.#at] !== '"')
        throw this.#wrong(`expected a key in double quotes or }, found ${this.#found()}`);
      const key = this.#string();
      this.#skip();
      if (this.#text[this.#at] !== ':') throw this.#wrong(`expected : after the key, found ${this.#found()}`);
      this.#at += 1;
      setMember(object, key, this.#value(depth + 1));
    });
    return object;
  }

  #array(depth: number): unknown {
    const array: unknown[] = [];
    this.#members(']', () => array.push(this.#value(depth + 1)));
    return array;
  }

  /** What stands between brackets, separated by commas; one may follow the last. */
  #members(close: string, member: () => void): void {
    this.#at += 1;
    for (;;) {
      this.#skip();
      if (this.#text[this.#at] === close) break;
      member();
      this.#skip();
      if (this.#text[this.#at] === ',') this.#at += 1;
      else if (this.#text[this.#at] !== close)
        throw this.#wrong(`expected , or ${close}, found ${this.#found()}`);
    }
    this.#at += 1;
  }

  #string(): string {
    const [token] = this.#match(/"(?:[^"\\\r\n]|\\.)*"/y) ?? [];
    if (token === undefined) throw this.#wrong('a string is not closed on its line');
    return String(this.#json(token, 'a string has a character or an escape that JSON does not know'));
  }

  #scalar(): unknown {
    const [token] = this.#match(/[\w+.-]+/y) ?? [];
    if (token === undefined) throw this.#wrong(`expected a value, found ${this.#found()}`);
    return this.#json(token, `${JSON.stringify(token)} is not a JSON value`);
  }

  /** Moves past a token that JSON itself has to accept. */
  #json(token: string, problem: string): unknown {
    try {
      const value: unknown = JSON.parse(token);
      this.#at += token.length;
      return value;
    } catch {
      throw this.#wrong(problem);
    }
  }

  /** Moves past white space and comments. */
  #skip(): void {
    const [blank] = this.#match(/(?:[ \t\r\n]+|\/\/[^\r\n]*|\/\*[^]*?\*\/)*/y) ?? [''];
    this.#at += blank.length;
    if (this.#text.startsWith('/*', this.#at)) throw this.#wrong('a comment is not closed');
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text);
  }

  #found(): string {
    const character = String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0);
    return this.#at < this.#text.length ? JSON.stringify(character) : 'the end of the file';
  }

  #wrong(problem: string): JsoncError {
    const lines = this.#text
      .slice(0, this.#at)
      .replace('\uFEFF', '')
      .split(/\r\n|\r|\n/);
    return new JsoncError(this.#source, problem, lines.length, (lines.at(-1)?.length ?? 0) + 1);
  }
}
