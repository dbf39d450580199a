// One run as it happens, on a terminal or in a log. What a reset voids is taken back: erased where the terminal still
// shows it as the last thing, else said in words, because a line-based output can't unsay anything
// (protocol/events.md 7.3). Guards against agents that talk at once: one has the floor and streams, what the others say
// is shown as soon as a block of it is whole, below the name of who says it. And against a model that imitates us: its
// text stands four columns in, our own lines at most two.

import type { EventRow, RunEvent } from '../contract/events.js';
import { RunFold } from '../contract/fold.js';
import { agentOf, DIM, harmless, headerOf, lineOf, YELLOW, type LiveLine } from './liveLines.js';

export interface LiveViewOutput {
  write(text: string): void;
  /** Columns of a terminal that understands cursor movement; `null` for anything else. */
  readonly columns: number | null;
}

type Kind = 'text' | 'reasoning';

interface Said {
  readonly kind: Kind;
  readonly text: string;
}

const ESC = '\u001b[';
const INDENT: Readonly<Record<Kind, string>> = { text: '    ', reasoning: '  ~ ' };

export class LiveView {
  readonly #output: LiveViewOutput;
  readonly #fold = new RunFold();
  readonly #names = new Map<string, string>();
  /** Whose deltas are printed as they come. */
  #floor: string | null = null;
  /** Its block is whole: the next delta of somebody else takes the floor. */
  #resting = false;
  /** What others have said meanwhile of blocks that are not whole yet. */
  readonly #waiting = new Map<string, Said[]>();
  /** Under whose name the last line stands. */
  #speaker: string | null = null;
  /** What the last line is part of; null: it is finished. */
  #tail: Kind | null = null;
  /** What was printed since the last line that can't be taken back; all of it is the speaker's. */
  #erasable = '';

  constructor(output: LiveViewOutput) {
    this.#output = output;
  }

  /** Rows in ascending cursor order; unknown kinds are passed over. */
  show(row: EventRow): void {
    const event = row.event;
    const effect = this.#fold.apply(row);
    if (effect.effect === 'ignored') return;
    const { turnId } = event;
    switch (event.kind) {
      case 'turn_started':
        this.#names.set(turnId, agentOf(event));
        if (this.#floor === null) this.#introduce(turnId);
        return;
      case 'text_delta':
        return this.#delta(turnId, { kind: 'text', text: event.text });
      case 'reasoning_delta':
        return this.#delta(turnId, { kind: 'reasoning', text: event.text });
      case 'text_end':
        this.#endBlock(turnId);
        this.#resting ||= this.#floor === turnId;
        return;
      case 'turn_reset':
        if (effect.effect === 'reset') this.#takeBack(turnId, effect.textChars + effect.reasoningChars);
        return;
      case 'turn_ended':
        this.#endBlock(turnId);
        this.#line(lineOf(event));
        return this.#passFloor(turnId);
      case 'tool_call_start':
      case 'tool_call_error':
        this.#endBlock(turnId);
        if (this.#speaker !== turnId) this.#introduce(turnId);
        this.#line(lineOf(event), turnId);
        return this.#passFloor(turnId);
      default:
        return this.#aside(event);
    }
  }

  /** A line of our own between those of the run. */
  note(text: string): void {
    this.#line({ text, colour: DIM });
  }

  /** What is no agent's. */
  #aside(event: RunEvent): void {
    // Turns that are still open are over, or their attempt is.
    if (event.kind === 'run_status') {
      this.#floor = null;
      for (const turnId of [...this.#waiting.keys()]) this.#endBlock(turnId);
    }
    this.#line(lineOf(event));
  }

  #delta(turnId: string, said: Said): void {
    if (this.#resting && this.#floor !== turnId) this.#passFloor(this.#floor);
    this.#floor ??= turnId;
    if (this.#floor === turnId) {
      this.#resting = false;
      return this.#say(turnId, said);
    }
    const waiting = this.#waiting.get(turnId);
    if (waiting === undefined) this.#waiting.set(turnId, [said]);
    else waiting.push(said);
  }

  #say(turnId: string, { kind, text }: Said): void {
    if (this.#speaker !== turnId) this.#introduce(turnId);
    if (this.#tail !== kind) {
      this.#endTail();
      this.#tail = kind;
      this.#print(INDENT[kind]);
    }
    const lines = harmless(text).replaceAll('\n', `\n${INDENT[kind]}`);
    this.#print(kind === 'reasoning' ? this.#paint(lines, DIM) : lines);
  }

  /** What a turn has said is whole: it is shown, and a later reset voids only what comes after it. */
  #endBlock(turnId: string): void {
    const waiting = this.#waiting.get(turnId) ?? [];
    this.#waiting.delete(turnId);
    for (const said of waiting) this.#say(turnId, said);
    if (this.#speaker !== turnId) return;
    this.#endTail();
    this.#erasable = '';
  }

  /** Lets the next one speak who has waited. */
  #passFloor(turnId: string | null): void {
    if (this.#floor !== turnId) return;
    this.#resting = false;
    const [next] = this.#waiting;
    this.#floor = next?.[0] ?? null;
    if (next === undefined) return;
    this.#waiting.delete(next[0]);
    for (const said of next[1]) this.#say(next[0], said);
  }

  #takeBack(turnId: string, characters: number): void {
    const waiting = this.#waiting.get(turnId) ?? [];
    this.#waiting.delete(turnId);
    // What was never shown needs no word.
    const shown = characters - waiting.reduce((sum, { text }) => sum + text.length, 0);
    if (shown <= 0) return;
    const { columns } = this.#output;
    if (columns !== null && this.#speaker === turnId && this.#erasable !== '') {
      const up = terminalRows(this.#erasable, columns) - 1;
      this.#output.write(`\r${up > 0 ? `${ESC}${up}A` : ''}${ESC}J`);
      this.#tail = null;
      this.#erasable = '';
    }
    if (this.#speaker !== turnId) this.#introduce(turnId);
    this.#line({ text: `  taken back: ${shown} characters`, colour: YELLOW }, turnId);
  }

  /** Names who speaks next. */
  #introduce(turnId: string): void {
    this.#line(headerOf(this.#names.get(turnId) ?? 'agent'), turnId);
  }

  /** @param speaker under whose name the line stands; null: it is nobody's, and the next speaker is named anew */
  #line(line: LiveLine | null, speaker: string | null = null): void {
    if (line === null) return;
    this.#endTail();
    this.#output.write(`${this.#paint(line.text, line.colour)}\n`);
    this.#erasable = '';
    this.#speaker = speaker;
  }

  #print(text: string): void {
    this.#erasable += text;
    this.#output.write(text);
  }

  #endTail(): void {
    if (this.#tail === null) return;
    this.#tail = null;
    this.#print('\n');
  }

  #paint(text: string, colour: number): string {
    return this.#output.columns === null ? text : `${ESC}${colour}m${text}${ESC}0m`;
  }
}

/** How many rows of a terminal a text takes that begins in its first column. Escapes take no room. */
function terminalRows(text: string, columns: number): number {
  const plain = text.replace(/\u001b\[[0-9;]*[A-Za-z]/g, '');
  return plain.split('\n').reduce((rows, line) => rows + Math.max(1, Math.ceil(line.length / columns)), 0);
}
