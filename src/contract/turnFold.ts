// One turn of an agent as a viewer shows it: items in order, and the mark behind which the model call in progress has
// produced (protocol/events.md 7.2). A reset voids text and reasoning behind the mark. Every step costs the same
// however long the turn is, because rows come from programs that may be hostile.

import type { UnknownRecord } from './json.js';

/** How a reset is read: only the model call in progress (ours), or all that the turn has shown so far. */
export type ResetReading = 'current-call' | 'whole-turn';

export type FoldedItem =
  | { readonly kind: 'text'; readonly blockId: string; readonly text: string; readonly open: boolean }
  | { readonly kind: 'reasoning'; readonly text: string }
  | {
      readonly kind: 'tool';
      readonly id: string;
      readonly name: string;
      readonly state: 'started' | 'ready' | 'executing' | 'done' | 'failed';
      /** Standard output and error, as they came. */
      readonly output: string;
      readonly input?: unknown;
      readonly result?: unknown;
      readonly error?: unknown;
    }
  | { readonly kind: 'compaction'; readonly started: UnknownRecord; readonly ended: UnknownRecord | null };

export interface TurnEnd {
  /** `interrupted`: no end came before the next attempt began or the run was over. */
  readonly reason: string;
  readonly usage?: unknown;
  readonly error?: unknown;
}

export interface FoldedTurn {
  readonly turnId: string;
  readonly agentId: string;
  readonly agentName: string;
  readonly items: readonly FoldedItem[];
  readonly end: TurnEnd | null;
}

/** Characters that a reset took back. */
export interface Voided {
  readonly textChars: number;
  readonly reasoningChars: number;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Item = { [K in FoldedItem['kind']]: Mutable<Extract<FoldedItem, { kind: K }>> }[FoldedItem['kind']];
type TextItem = Extract<Item, { kind: 'text' }>;
type ToolItem = Extract<Item, { kind: 'tool' }>;

export class TurnFold implements FoldedTurn {
  readonly turnId: string;
  agentId = '';
  agentName = '';
  items: Item[] = [];
  end: TurnEnd | null = null;

  readonly #reading: ResetReading;
  readonly #tools = new Map<string, ToolItem>();
  /** Open blocks of the call in progress, and open blocks of earlier calls, by id. */
  readonly #openNow = new Map<string, TextItem>();
  readonly #openEarlier = new Map<string, TextItem>();
  #mark = 0;

  constructor(turnId: string, reading: ResetReading) {
    this.turnId = turnId;
    this.#reading = reading;
  }

  /** Whether events of that kind are part of a turn. */
  static folds(kind: string): boolean {
    return TURN_KINDS.has(kind);
  }

  /** What a reset took back; null for every other kind. */
  apply(kind: string, event: UnknownRecord): Voided | null {
    switch (kind) {
      case 'turn_started':
        this.agentId = textOf(event, 'agentId');
        this.agentName = textOf(event, 'agentName');
        return null;
      case 'text_start':
        this.#openBlock(textOf(event, 'blockId'));
        return null;
      case 'text_delta':
        this.#openBlock(textOf(event, 'blockId')).text += textOf(event, 'text');
        return null;
      case 'text_end':
        this.#closeBlock(textOf(event, 'blockId'));
        this.#moveMark();
        return null;
      case 'reasoning_delta':
        this.#reason(textOf(event, 'text'));
        return null;
      case 'turn_reset':
        return this.#reset();
      case 'turn_ended':
        this.#finish({ reason: textOf(event, 'reason'), ...given(event, 'usage'), ...given(event, 'error') });
        return null;
      case 'compaction_started':
        this.items.push({ kind: 'compaction', started: event, ended: null });
        this.#moveMark();
        return null;
      case 'compaction_ended':
        this.#endCompaction(event);
        this.#moveMark();
        return null;
      default:
        this.#applyToTool(kind, event, this.#tool(textOf(event, 'toolCallId')));
        return null;
    }
  }

  /** Closes a turn whose end never came; one that has ended stays as it is. */
  interrupt(): void {
    if (this.end === null) this.#finish({ reason: 'interrupted' });
  }

  /** The open block of the call in progress; made when missing, since no second `text_start` comes after a reset. */
  #openBlock(blockId: string): TextItem {
    const known = this.#openNow.get(blockId);
    if (known !== undefined) return known;
    const block: TextItem = { kind: 'text', blockId, text: '', open: true };
    this.items.push(block);
    this.#openNow.set(blockId, block);
    return block;
  }

  #closeBlock(blockId: string): void {
    const open = this.#openNow.get(blockId) ?? this.#openEarlier.get(blockId);
    if (open === undefined) return;
    open.open = false;
    if (!this.#openNow.delete(blockId)) this.#openEarlier.delete(blockId);
  }

  #reason(text: string): void {
    const last = this.items.at(-1);
    if (last?.kind === 'reasoning' && this.items.length > this.#mark) last.text += text;
    else this.items.push({ kind: 'reasoning', text });
  }

  #reset(): Voided {
    const from = this.#reading === 'whole-turn' ? 0 : this.#mark;
    const kept: Item[] = [];
    let [textChars, reasoningChars] = [0, 0];
    for (const item of this.items.splice(from)) {
      if (item.kind === 'text') textChars += item.text.length;
      else if (item.kind === 'reasoning') reasoningChars += item.text.length;
      else kept.push(item);
    }
    for (const item of kept) this.items.push(item);
    // What is left behind the mark was made before the call that starts over now, or belongs to no call.
    if (this.#reading === 'whole-turn') {
      this.#mark = this.items.length;
      this.#openEarlier.clear();
    }
    this.#openNow.clear();
    return { textChars, reasoningChars };
  }

  #endCompaction(event: UnknownRecord): void {
    const last = this.items.at(-1);
    if (last?.kind === 'compaction' && last.ended === null) last.ended = event;
    else this.items.push({ kind: 'compaction', started: {}, ended: event });
  }

  #tool(id: string): ToolItem {
    const known = this.#tools.get(id);
    if (known !== undefined) return known;
    const tool: ToolItem = { kind: 'tool', id, name: '', state: 'started', output: '' };
    this.items.push(tool);
    this.#tools.set(id, tool);
    return tool;
  }

  #applyToTool(kind: string, event: UnknownRecord, tool: ToolItem): void {
    switch (kind) {
      case 'tool_call_start':
        tool.name = textOf(event, 'toolName');
        this.#moveMark();
        break;
      case 'tool_call_input_complete':
        tool.input = event['input'];
        tool.state = 'ready';
        break;
      case 'tool_call_executing':
        tool.state = 'executing';
        break;
      case 'tool_output_delta':
        tool.output += textOf(event, 'text');
        break;
      case 'tool_call_result':
        tool.result = event['result'];
        tool.state = 'done';
        break;
      case 'tool_call_error':
        tool.error = event['error'];
        tool.state = 'failed';
        break;
    }
  }

  #moveMark(): void {
    this.#mark = this.items.length;
    for (const [blockId, block] of this.#openNow) {
      // An older block of that name can't be reached any more: what comes goes to the younger one.
      const older = this.#openEarlier.get(blockId);
      if (older !== undefined) older.open = false;
      this.#openEarlier.set(blockId, block);
    }
    this.#openNow.clear();
  }

  #finish(end: TurnEnd): void {
    this.#moveMark();
    for (const block of this.#openEarlier.values()) block.open = false;
    this.#openEarlier.clear();
    this.end = end;
  }
}

const TURN_KINDS: ReadonlySet<string> = new Set([
  'turn_started',
  'turn_ended',
  'reasoning_delta',
  'text_start',
  'text_delta',
  'text_end',
  'turn_reset',
  'tool_call_start',
  'tool_call_input_delta',
  'tool_call_input_complete',
  'tool_call_executing',
  'tool_output_delta',
  'tool_call_result',
  'tool_call_error',
  'compaction_started',
  'compaction_ended',
]);

function textOf(event: UnknownRecord, field: string): string {
  const value = event[field];
  return typeof value === 'string' ? value : '';
}

function given<K extends string>(event: UnknownRecord, field: K): Partial<Record<K, unknown>> {
  return event[field] === undefined ? {} : ({ [field]: event[field] } as Record<K, unknown>);
}
