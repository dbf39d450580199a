// What a viewer says of single events, and text from outside made harmless for a terminal. Guards against a program or a
// model that moves the cursor, hides a line or breaks one in two: control characters are shown, never sent.

import type { RunEvent } from '../contract/events.js';

/** A line of ours; what stands below it when its text has several begins with `indent`. */
export interface LiveLine {
  readonly text: string;
  readonly colour: number;
}

export const DIM = 2;
export const YELLOW = 33;
const GREEN = 32;
const RED = 31;
const BOLD = 1;

/** C0 and C1 but newline and tab, and the marks that turn the direction of writing. */
const HARMFUL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Text of several lines; what would steer a terminal is shown as an escape. */
export function harmless(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(HARMFUL, shownEscape);
}

/** The same for what must stay on one line. */
export function oneLine(text: string): string {
  return harmless(text).replace(/[\n\t]/g, shownEscape);
}

function shownEscape(character: string): string {
  const code = character.charCodeAt(0);
  if (character === '\n') return '\\n';
  if (character === '\t') return '\\t';
  return code < 0x1_00
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** An error in words, on one line. */
export function failureText(error: { readonly code: string; readonly message: string }): string {
  return `${oneLine(error.code)}: ${oneLine(error.message)}`;
}

/** Of events that are no streamed text; null: nothing is said. */
export function lineOf(event: RunEvent): LiveLine | null {
  switch (event.kind) {
    case 'run_status':
      return {
        text: `run ${oneLine(event.runId)}: ${event.status}${event.error === undefined ? '' : ` (${failureText(event.error)})`}`,
        colour: event.status === 'failed' ? RED : DIM,
      };
    case 'phase':
      return { text: `phase: ${oneLine(event.name)}`, colour: BOLD };
    case 'output':
      return { text: `output: ${oneLine(JSON.stringify(event.value))}`, colour: GREEN };
    case 'program_output': {
      const mark = event.stream === 'stderr' ? '  ! ' : '  | ';
      return {
        text: mark + harmless(event.text.replace(/\r?\n$/, '')).replaceAll('\n', `\n${mark}`),
        colour: event.stream === 'stderr' ? RED : DIM,
      };
    }
    case 'turn_started':
      return { text: `${agentOf(event)}:`, colour: BOLD };
    case 'turn_ended': {
      const tokens =
        event.usage === undefined
          ? ''
          : `, ${event.usage.inputTokens ?? 0} tokens in, ${event.usage.outputTokens ?? 0} out`;
      const why = event.error === undefined ? '' : ` (${failureText(event.error)})`;
      return {
        text: `  ${agentOf(event)} ${event.reason}${tokens}${why}`,
        colour: event.reason === 'complete' ? GREEN : RED,
      };
    }
    case 'tool_call_start':
      return { text: `  tool ${oneLine(event.toolName)}`, colour: DIM };
    case 'tool_call_error':
      return { text: `  tool failed (${failureText(event.error)})`, colour: RED };
    case 'human_input_requested':
      return {
        text: `  waits for an answer to "${oneLine(event.key)}": ${oneLine(event.prompt)}`,
        colour: BOLD,
      };
    case 'compaction_ended':
      return { text: `  context compacted (${event.method}, ${event.reclaimed} tokens)`, colour: DIM };
    default:
      return null;
  }
}

/** Who speaks, as a header. */
export function headerOf(name: string): LiveLine {
  return { text: `${name}:`, colour: BOLD };
}

export function agentOf(event: {
  readonly agentId: string;
  readonly agentName?: string | undefined;
}): string {
  return oneLine(event.agentName ?? event.agentId);
}
