// The secrets of one run, and where they occur in a text. One search for all of them, built once a change and run over
// the text once, because it stands in the way of every event. Short values are left out: replacing every `true` would
// destroy the output and hide nothing. What takes their place is `redact.ts`; texts that come in pieces, `holdBack.ts`.

/** Values shorter than this are not secrets that a search can tell from ordinary text (protocol/program.md 10). */
export const MIN_SECRET_CHARS = 4;

/** Where a secret stands in a text; `end` is exclusive. */
export interface SecretMatch {
  readonly start: number;
  readonly end: number;
}

export class SecretSet {
  readonly #values = new Set<string>();
  /** What is searched for: the values and their other spellings. */
  readonly #needles = new Set<string>();
  #search: Search | undefined;

  get size(): number {
    return this.#values.size;
  }

  /**
   * Remembers a value. Its trimmed form and its form inside a JSON string count too: a secret read from a file ends with
   * a line break, and one that holds quotes or line breaks is printed with escapes.
   */
  add(value: string): void {
    if (value.length < MIN_SECRET_CHARS || this.#values.has(value)) return;
    this.#values.add(value);
    const trimmed = value.trim();
    for (const text of [value, trimmed, insideJson(value), insideJson(trimmed)]) {
      if (text.length >= MIN_SECRET_CHARS) this.#needles.add(text);
    }
    this.#search = undefined;
  }

  /** Every place where a secret begins, in order, with the longest secret that begins there. They may overlap. */
  *matches(text: string): Generator<SecretMatch> {
    const { pattern, shortest } = this.#searching();
    if (text.length < shortest) return;
    for (let from = 0; ;) {
      pattern.lastIndex = from;
      const found = pattern.exec(text);
      if (found === null) return;
      from = found.index + 1;
      yield { start: found.index, end: found.index + found[0].length };
    }
  }

  /** How many characters at the end of the text may be the beginning of a secret that goes on in the next piece. */
  openTail(text: string): number {
    let longest = 0;
    for (const needle of this.#searching().prefixes) longest = Math.max(longest, needle.openTail(text));
    return longest;
  }

  #searching(): Search {
    return (this.#search ??= buildSearch([...this.#needles]));
  }
}

interface Search {
  readonly pattern: RegExp;
  /** Length of the shortest needle; Infinity when there is none. */
  readonly shortest: number;
  readonly prefixes: readonly Prefixes[];
}

function buildSearch(needles: readonly string[]): Search {
  const longestFirst = [...needles].sort((a, b) => b.length - a.length);
  return {
    pattern: new RegExp(longestFirst.map(escape).join('|'), 'g'),
    shortest: longestFirst.at(-1)?.length ?? Infinity,
    prefixes: longestFirst.map((needle) => new Prefixes(needle)),
  };
}

/** Finds the longest end of a text that is a proper beginning of one needle, in time linear in the needle (Knuth, Morris, Pratt). */
class Prefixes {
  readonly #needle: string;
  /** For each length of a matched beginning: the next shorter one that ends in the same way. */
  #fallback: Uint32Array | undefined;

  constructor(needle: string) {
    this.#needle = needle;
  }

  openTail(text: string): number {
    const needle = this.#needle;
    const start = text.indexOf(needle.charAt(0), Math.max(0, text.length - needle.length + 1));
    if (start === -1) return 0;
    const fallback = (this.#fallback ??= fallbacks(needle));
    let matched = 0;
    for (let at = start; at < text.length; at += 1) {
      const unit = text.charCodeAt(at);
      while (matched > 0 && needle.charCodeAt(matched) !== unit) matched = fallback[matched] ?? 0;
      if (needle.charCodeAt(matched) === unit) matched += 1;
    }
    return matched;
  }
}

function fallbacks(needle: string): Uint32Array {
  const table = new Uint32Array(needle.length + 1);
  let matched = 0;
  for (let at = 1; at < needle.length; at += 1) {
    const unit = needle.charCodeAt(at);
    while (matched > 0 && needle.charCodeAt(matched) !== unit) matched = table[matched] ?? 0;
    if (needle.charCodeAt(matched) === unit) matched += 1;
    table[at + 1] = matched;
  }
  return table;
}

function insideJson(value: string): string {
  return JSON.stringify(value).slice(1, -1);
}

function escape(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
