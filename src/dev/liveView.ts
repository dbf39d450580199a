// One run as it happens, on a terminal or in a log. What a reset voids is taken back: erased where the terminal still
// shows it as the last thing, else said in words, because a line-based output can't unsay anything
// (protocol/events.md 7.3).

import type { EventRow, RunEvent } from '../contract/events.js';
import { RunFold } from '../contract/fold.js';

export interface LiveViewOutput {
  write(text: string): void;
  /** Columns of a terminal that understands cursor movement; `null` for anything else. */
  readonly columns: number | null;
}

interface Tail {
  readonly turnId: string;
  readonly kind: 'text' | 'reasoning';
}

const ESC = '\u001b[';

export class LiveView {
  readonly #output: LiveViewOutput;
  readonly #fold = new RunFold();
  /** What the last deltas belong to; anything else that is printed ends it. */
  #tail: Tail | null = null;
  /** All that was printed since the last line that can't be taken back. */
  #erasable = '';
  #erasableTurn: string | null = null;

  constructor(output: LiveViewOutput) {
    this.#output = output;
  }

  /** Rows in ascending cursor order; unknown kinds are passed over. */
  show(row: EventRow): void {
    const event = row.event;
    const effect = this.#fold.apply(row);
    switch (event.kind) {
      case 'text_delta':
        return this.#delta(event.turnId, 'text', event.text);
      case 'reasoning_delta':
        return this.#delta(event.turnId, 'reasoning', event.text);
      case 'text_end':
        this.#endTail();
        // What stands on the screen now stays: a later reset voids only what comes after this boundary.
        return this.#forget();
      case 'turn_reset':
        if (effect.effect === 'reset') this.#takeBack(event.turnId, effect.textChars + effect.reasoningChars);
        return;
      default: {
        const line = lineOf(event);
        if (line !== null) this.#line(this.#paint(line.text, line.colour));
      }
    }
  }

  /** A line of our own between those of the run. */
  note(text: string): void {
    this.#line(this.#paint(text, 2));
  }

  #delta(turnId: string, kind: Tail['kind'], text: string): void {
    if (this.#tail?.turnId !== turnId || this.#tail.kind !== kind) {
      this.#endTail();
      if (this.#erasableTurn !== turnId) this.#erasable = '';
      this.#erasableTurn = turnId;
      this.#tail = { turnId, kind };
      this.#print(kind === 'reasoning' ? '  ~ ' : '  ');
    }
    this.#print(kind === 'reasoning' ? this.#paint(text, 2) : text);
  }

  #takeBack(turnId: string, characters: number): void {
    if (characters <= 0) return;
    const { columns } = this.#output;
    if (columns !== null && this.#erasableTurn === turnId && this.#erasable !== '') {
      const up = terminalRows(this.#erasable, columns) - 1;
      this.#output.write(`\r${up > 0 ? `${ESC}${up}A` : ''}${ESC}J`);
      this.#forget();
    }
    this.#line(this.#paint(`  taken back: ${characters} characters`, 33));
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

  #line(text: string): void {
    this.#endTail();
    this.#output.write(`${text}\n`);
    this.#forget();
  }

  #forget(): void {
    this.#tail = null;
    this.#erasable = '';
    this.#erasableTurn = null;
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

const GREEN = 32;
const RED = 31;
const DIM = 2;
const BOLD = 1;

function lineOf(event: RunEvent): { readonly text: string; readonly colour: number } | null {
  switch (event.kind) {
    case 'run_status':
      return {
        text: `run ${event.runId}: ${event.status}${event.error === undefined ? '' : ` (${event.error.code}: ${event.error.message})`}`,
        colour: event.status === 'failed' ? RED : DIM,
      };
    case 'phase':
      return { text: `phase: ${event.name}`, colour: BOLD };
    case 'output':
      return { text: `output: ${JSON.stringify(event.value)}`, colour: GREEN };
    case 'program_output':
      return {
        text: `  ${event.stream === 'stderr' ? '!' : '|'} ${event.text}`,
        colour: event.stream === 'stderr' ? RED : DIM,
      };
    case 'turn_started':
      return { text: `${event.agentName ?? event.agentId}:`, colour: BOLD };
    case 'turn_ended': {
      const tokens =
        event.usage === undefined
          ? ''
          : `, ${event.usage.inputTokens ?? 0} tokens in, ${event.usage.outputTokens ?? 0} out`;
      const why = event.error === undefined ? '' : ` (${event.error.code}: ${event.error.message})`;
      return {
        text: `  ${event.agentName ?? event.agentId} ${event.reason}${tokens}${why}`,
        colour: event.reason === 'complete' ? GREEN : RED,
      };
    }
    case 'tool_call_start':
      return { text: `  tool ${event.toolName}`, colour: DIM };
    case 'tool_call_error':
      return { text: `  tool failed (${event.error.code}: ${event.error.message})`, colour: RED };
    case 'human_input_requested':
      return { text: `  waits for an answer to "${event.key}": ${event.prompt}`, colour: BOLD };
    case 'compaction_ended':
      return { text: `  context compacted (${event.method}, ${event.reclaimed} tokens)`, colour: DIM };
    default:
      return null;
  }
}
