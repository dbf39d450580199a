// Frames of a telemetry batch as rows (protocol/events.md 1-3, 6). It guards the store: a batch with one bad row is
// refused as a whole, naming it, so that a producer's fault shows where it is made. Kinds that we don't know are taken
// as they are, known ones have to be what their kind says; keys that we don't know are nobody's business.

import { isCursor, splitCursor } from '../../contract/cursors.js';
import { isEventKind, parseRunEventLenient, runEventSchema } from '../../contract/events.js';
import { isRecord } from '../../contract/json.js';
import { parseWire } from '../../contract/lenient.js';
import { WireError } from '../../contract/wireError.js';
import { Refusal } from './answer.js';
import type { StoredEvent, StoredRow } from './rowStore.js';

/** @throws Refusal 400 that names the frame and the field */
export function readRows(runId: string, frames: readonly string[]): StoredRow[] {
  return frames.map((frame, index) => {
    try {
      return readRow(runId, frame);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      throw new Refusal(400, 'VALIDATION_FAILED', `telemetry request: frames.${index}: ${describe(error)}`);
    }
  });
}

function describe(error: WireError): string {
  return error.message.slice(error.endpoint.length + 2);
}

function readRow(runId: string, frame: string): StoredRow {
  let row: unknown;
  try {
    row = JSON.parse(frame);
  } catch {
    throw wrong('', 'is not JSON');
  }
  if (!isRecord(row)) throw wrong('', 'must be an object');
  const { cursor, event } = row;
  if (!isCursor(cursor)) throw wrong('cursor', 'must be block x 1000000 + seq, seq from 1 to 999999');
  if (!isEvent(event)) throw wrong('event', 'must be an object with a kind');
  if (event['runId'] !== runId) throw wrong('event.runId', 'must be the run of the path');
  if (event['seq'] !== splitCursor(cursor).seq)
    throw wrong('event.seq', 'must be the cursor’s position in its block');
  // Only what a lenient reader can't make sense of is asked again, for the field that is wrong.
  if (isEventKind(event.kind) && parseRunEventLenient(event) === null)
    parseWire('event', runEventSchema, event);
  return { cursor, event };
}

function isEvent(value: unknown): value is StoredEvent {
  return isRecord(value) && typeof value['kind'] === 'string';
}

function wrong(field: string, problem: string): WireError {
  return new WireError({ endpoint: 'row', field, problem });
}
