// Getting what must not be lost to the gateway: rows, and at the end the finalize. It guards against a row dropped
// because Redis or the gateway was slow (R7), against a finalize that one bad answer loses (R19), and against one bad
// row that holds up all others. Both calls are safe to repeat; only the loss of the run ends the trying.

import {
  CALL_TIMEOUT_MS,
  type Control,
  type ControlAnswer,
  type ControlCall,
  GatewayError,
} from './control.js';
import type { Row } from './eventStream.js';
import { isRecord } from '../contract/json.js';
import { pause } from '../waiting/waiting.js';

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
/** This attempt may say nothing any more: another owner, a finished run, a door that is not ours. */
const LOST: ReadonlySet<number> = new Set([401, 403, 404, 409, 410]);
/** What was sent is at fault, not the moment. */
const REFUSED: ReadonlySet<number> = new Set([400, 413]);

/** Nothing can be delivered any more. */
export class DeliveryLost extends Error {
  override readonly name = 'DeliveryLost';
}

export type Delivered =
  { readonly outcome: 'taken' } | { readonly outcome: 'refused'; readonly answer: ControlAnswer };

export interface DeliveryOptions {
  readonly control: Pick<Control, 'call'>;
  /** Ends the trying. */
  readonly signal?: AbortSignal;
  readonly log: (message: string) => void;
  /** Told once for the first call that says so. */
  readonly onLost: (why: string) => void;
}

/** @throws DeliveryLost */
export async function deliver(call: ControlCall, options: DeliveryOptions): Promise<Delivered> {
  const { control, signal, log, onLost } = options;
  for (let failures = 0; ; failures += 1) {
    if (signal?.aborted === true) throw new DeliveryLost(`${call.name} was given up`);
    let trouble: string;
    try {
      const answer = await control.call(
        signal === undefined ? call : { ...call, signal },
        CALL_TIMEOUT_MS.lane,
      );
      if (answer.status >= 200 && answer.status < 300) return { outcome: 'taken' };
      if (REFUSED.has(answer.status)) return { outcome: 'refused', answer };
      if (LOST.has(answer.status)) {
        onLost(`${call.name} was answered with status ${answer.status}`);
        throw new DeliveryLost(`${call.name} was answered with status ${answer.status}`);
      }
      trouble = `status ${answer.status}`;
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      trouble = error.message;
    }
    if (failures === 0) log(`${call.name}: ${trouble}; trying on`);
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 8));
    await pause(pauseMs, signal, { ref: true });
  }
}

/** Delivers rows in order. A batch that is refused is halved until the bad row is alone; a notice takes its cursor. */
export function rowDelivery(options: DeliveryOptions): (rows: readonly Row[]) => Promise<void> {
  const send = async (rows: readonly Row[]): Promise<Delivered> =>
    deliver(
      {
        name: 'telemetry',
        method: 'POST',
        path: 'telemetry',
        body: { frames: rows.map((row) => row.frame) },
      },
      options,
    );

  return async function deliverRows(rows: readonly Row[]): Promise<void> {
    const delivered = await send(rows);
    if (delivered.outcome === 'taken') return;
    const [first, ...others] = rows;
    if (first === undefined) return;
    if (others.length > 0) {
      const half = Math.ceil(rows.length / 2);
      await deliverRows(rows.slice(0, half));
      await deliverRows(rows.slice(half));
      return;
    }
    options.log(
      `an event was refused with status ${delivered.answer.status} (cursor ${first.cursor}); a notice takes its place`,
    );
    const notice = await send([noticeFor(first, delivered.answer.status)]);
    if (notice.outcome === 'refused')
      options.log(`the notice for cursor ${first.cursor} was refused too; the row is lost`);
  };
}

function noticeFor(row: Row, status: number): Row {
  const { event } = readFrame(row.frame);
  const { runId, seq, t, kind } = event;
  const text = `[boardwalk] An event (${String(kind)}) was refused with status ${status} and is left out here.`;
  const notice = { runId, turnId: runId, seq, t, kind: 'program_output', stream: 'stderr', text };
  return { cursor: row.cursor, frame: JSON.stringify({ cursor: row.cursor, event: notice }) };
}

function readFrame(frame: string): { readonly event: Readonly<Record<string, unknown>> } {
  const parsed: unknown = JSON.parse(frame);
  return { event: isRecord(parsed) && isRecord(parsed['event']) ? parsed['event'] : {} };
}
