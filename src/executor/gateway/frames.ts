// Telemetry frames from outside: are they rows of this run, in order, of a bearable size? It guards the lane, whose
// order and cursors everything behind relies on. What an event of some kind must hold is not checked here: a kind
// that we don't know yet has to reach the platform.

import { isCursor, splitCursor } from '../../contract/cursors.js';
import { isRecord, type UnknownRecord } from '../../contract/json.js';
import { Refusal } from './answers.js';

/** A frame that passed, parsed once. */
export interface Row {
  readonly cursor: number;
  /** As the sandbox sent it. */
  readonly frame: string;
  readonly parsed: UnknownRecord;
  readonly event: UnknownRecord;
}

export interface FrameRules {
  readonly runId: string;
  /** Rows at or below it belong to an earlier attempt or to the control plane: `lastEventCursor` of the claim. */
  readonly aboveCursor: number;
  readonly frameBytes: number;
  readonly framesPerBatch: number;
}

/**
 * Reads the body of a `telemetry` call (protocol/run-control.md section 13; cursors: protocol/events.md section 2).
 *
 * @throws Refusal 400 that names the frame by its position, 413 for one that is too long or too many
 */
export function readRows(body: unknown, rules: FrameRules): readonly Row[] {
  const frames = isRecord(body) ? body['frames'] : undefined;
  if (!Array.isArray(frames)) throw invalid('frames must be an array of strings');
  if (frames.length > rules.framesPerBatch) {
    throw new Refusal(413, 'BATCH_TOO_LARGE', `A batch has at most ${rules.framesPerBatch} frames.`);
  }
  let last = rules.aboveCursor;
  return frames.map((frame: unknown, index) => {
    const row = readRow(frame, index, rules);
    if (row.cursor <= last) {
      throw invalid(
        index === 0
          ? `frames[0]: its cursor must be above ${last}, the lastEventCursor of the claim`
          : `frames[${index}]: cursors must rise within a batch`,
      );
    }
    last = row.cursor;
    return row;
  });
}

function readRow(frame: unknown, index: number, rules: FrameRules): Row {
  if (typeof frame !== 'string') throw invalid(`frames[${index}] must be a string`);
  if (Buffer.byteLength(frame) > rules.frameBytes) {
    throw new Refusal(413, 'FRAME_TOO_LARGE', `frames[${index}] is longer than ${rules.frameBytes} bytes.`);
  }
  const parsed = parse(frame);
  if (!isRecord(parsed)) throw invalid(`frames[${index}] is not a JSON object`);
  const { cursor, event } = parsed;
  if (!isCursor(cursor)) throw invalid(`frames[${index}] has no valid cursor`);
  if (!isRecord(event)) throw invalid(`frames[${index}] has no event`);
  if (event['runId'] !== rules.runId) throw invalid(`frames[${index}] has an event of another run`);
  if (event['seq'] !== splitCursor(cursor).seq)
    throw invalid(`frames[${index}] has an event whose seq is not its cursor's`);
  return { cursor, frame, parsed, event };
}

/** `undefined` when it isn't JSON; the parser's own message would quote the text. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function invalid(problem: string): Refusal {
  return new Refusal(400, 'VALIDATION_FAILED', `telemetry: ${problem}.`);
}
