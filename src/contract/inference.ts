// A model call's answer: frames, one JSON object a line, and when a call may be made again (protocol/inference.md 3-5).
// Read by the gateway and by the runtime alike, so that both agree on what was seen. It guards against a call that is
// repeated after content was shown, and against half a result taken for a whole one. It sends nothing itself.

import { isRecord, ownMember } from './json.js';
import { LineReader, LineTooLongError } from './lines.js';

export interface InferenceToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** Only numbers of the wire; absent when the model didn't say. */
export interface TurnUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cacheReadTokens?: number;
  readonly cacheCreationTokens?: number;
}

export interface InferenceTurn {
  /** The whole answer; wins over the concatenated deltas. */
  readonly text: string;
  readonly toolCalls: readonly InferenceToolCall[];
  readonly usage: TurnUsage;
  readonly wantsTools: boolean;
}

export interface ResultFrame {
  readonly kind: 'result';
  readonly turn: InferenceTurn;
  readonly modelRef: string;
  /** Millionths of a US dollar; 0 when unknown. */
  readonly costMicros: number;
  /** The model's context window, in whole tokens. */
  readonly contextTokens?: number;
}

export interface ErrorFrame {
  readonly kind: 'error';
  readonly error: { readonly code: string; readonly message: string };
}

export type InferenceFrame =
  | { readonly kind: 'delta'; readonly text: string }
  | { readonly kind: 'reasoning'; readonly text: string }
  /** Everything streamed for this call so far is void. */
  | { readonly kind: 'reset' }
  | ResultFrame
  | ErrorFrame
  /** A keep-alive, or a frame of a kind that we don't know. */
  | { readonly kind: 'ping' };

/** The stream can't be understood: a line is no JSON object, or a result lacks what makes it one. Always fatal to the call. */
export class InferenceStreamError extends Error {
  override readonly name = 'InferenceStreamError';
  /** What the program is told (protocol/inference.md 9). */
  readonly code = 'PROVIDER_ERROR';
}

/**
 * One line, without its line end and not blank.
 *
 * @throws InferenceStreamError
 */
export function parseFrameLine(line: string): InferenceFrame {
  let frame: unknown;
  try {
    frame = JSON.parse(line);
  } catch (cause) {
    // The cause's message would quote the line, which is the model's or, behind a bad proxy, anybody's text.
    throw new InferenceStreamError(`a line of the inference stream is not JSON (${line.length} characters)`, {
      cause: cause instanceof SyntaxError ? undefined : cause,
    });
  }
  if (typeof frame !== 'object' || frame === null)
    throw new InferenceStreamError('a line of the inference stream is not a JSON object');
  if (!isRecord(frame)) return PING;
  switch (ownMember(frame, 't')) {
    case 'delta':
      return { kind: 'delta', text: textOr(frame['text'], '') };
    case 'reasoning':
      return { kind: 'reasoning', text: textOr(frame['text'], '') };
    case 'reset':
      return { kind: 'reset' };
    case 'result':
      return readResult(frame);
    case 'error':
      return readError(frame['error']);
    default:
      return PING;
  }
}

/**
 * Frames of a whole response body.
 *
 * @throws InferenceStreamError after the frames that came before the bad line; whatever the source throws when the
 *   connection breaks
 */
export async function* readFrames(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<InferenceFrame> {
  const lines = new LineReader();
  for await (const chunk of chunks) yield* framesOf(lines.push(chunk));
  yield* framesOf(lines.end());
}

const PING: InferenceFrame = { kind: 'ping' };

function* framesOf(lines: Iterable<string>): Generator<InferenceFrame> {
  try {
    for (const line of lines) yield parseFrameLine(line);
  } catch (error) {
    if (error instanceof LineTooLongError) throw new InferenceStreamError(error.message, { cause: error });
    throw error;
  }
}

function readError(error: unknown): ErrorFrame {
  const given = isRecord(error) ? error : {};
  const code = textOr(given['code'], 'INTERNAL_ERROR');
  return { kind: 'error', error: { code, message: textOr(given['message'], 'Inference failed') } };
}

function readResult(frame: Readonly<Record<string, unknown>>): ResultFrame {
  const { turn, modelRef, costMicros, contextTokens } = frame;
  if (!isRecord(turn)) throw incomplete('turn must be an object');
  const { text, toolCalls, usage, wantsTools } = turn;
  if (typeof text !== 'string') throw incomplete('turn.text must be a string');
  if (!Array.isArray(toolCalls)) throw incomplete('turn.toolCalls must be an array');
  if (typeof modelRef !== 'string' || modelRef === '')
    throw incomplete('modelRef must be a non-empty string');
  const window = isPositive(contextTokens) ? Math.floor(contextTokens) : 0;
  return {
    kind: 'result',
    turn: {
      text,
      toolCalls: toolCalls.map(readToolCall),
      usage: readUsage(usage),
      wantsTools: wantsTools === true,
    },
    modelRef,
    costMicros: isPositive(costMicros) ? costMicros : 0,
    ...(window > 0 && { contextTokens: window }),
  };
}

function readToolCall(call: unknown): InferenceToolCall {
  if (!isRecord(call)) throw incomplete('a tool call must be an object');
  const { id, name, input } = call;
  if (typeof id !== 'string' || typeof name !== 'string' || !isRecord(input))
    throw incomplete('a tool call must have the strings id and name and the object input');
  return { id, name, input };
}

function readUsage(usage: unknown): TurnUsage {
  if (!isRecord(usage)) return {};
  const { inputTokens, outputTokens, cacheReadTokens, cacheCreationTokens } = usage;
  return {
    ...(typeof inputTokens === 'number' && { inputTokens }),
    ...(typeof outputTokens === 'number' && { outputTokens }),
    ...(typeof cacheReadTokens === 'number' && { cacheReadTokens }),
    ...(typeof cacheCreationTokens === 'number' && { cacheCreationTokens }),
  };
}

function incomplete(problem: string): InferenceStreamError {
  return new InferenceStreamError(`the result of the inference stream is incomplete: ${problem}`);
}

function isPositive(value: unknown): value is number {
  return typeof value === 'number' && value > 0;
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise;
}
