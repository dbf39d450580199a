// The second line of redaction, for runtimes that don't hold back a possible prefix of a secret themselves (R16):
// whole rows, and the joined text of one block within a batch. Nothing is held back here, so cursors stay dense; a
// secret that is split over two batches is the runtime's to catch (design section 7).

import { setMember, type UnknownRecord } from '../../contract/json.js';
import type { LaneRow } from '../../queue/lane.js';
import { redact, redactDeep } from '../../redaction/redact.js';
import type { SecretSet } from '../../redaction/secretSet.js';
import type { Row } from './frames.js';

/** Members by which a row is found, ordered and told apart; a secret that happens to equal one must not break it. */
const STRUCTURE: ReadonlySet<string> = new Set([
  'runId',
  'turnId',
  'seq',
  't',
  'kind',
  'blockId',
  'toolCallId',
  'agentId',
  'requestId',
  'stream',
  'status',
]);
/** Free text in `egress_denied`, a closed set of words in every other kind. */
const WORDS: ReadonlySet<string> = new Set(['reason', 'method']);

interface CleanRow {
  readonly row: Row;
  /** The same object as the row's own while nothing was found in it. */
  event: UnknownRecord;
}

/** The rows as they go into the lane. */
export function redactRows(rows: readonly Row[], secrets: SecretSet): readonly LaneRow[] {
  if (secrets.size === 0) return rows;
  const clean = rows.map((row): CleanRow => ({ row, event: redactEvent(row.event, secrets) }));
  for (const stretch of stretches(clean)) redactAcross(stretch, secrets);
  return clean.map(({ row, event }) =>
    event === row.event ? row : { cursor: row.cursor, frame: JSON.stringify({ ...row.parsed, event }) },
  );
}

function redactEvent(event: Row['event'], secrets: SecretSet): Row['event'] {
  let changed: Record<string, unknown> | undefined;
  for (const [key, value] of Object.entries(event)) {
    if (STRUCTURE.has(key) || (WORDS.has(key) && event['kind'] !== 'egress_denied')) continue;
    const clean = typeof value === 'string' ? redact(value, secrets) : redactDeep(value, secrets);
    if (clean !== value) setMember((changed ??= { ...event }), key, clean);
  }
  return changed ?? event;
}

/** A secret that only shows when the pieces are joined: the first row takes the clean whole, the others keep their cursor. */
function redactAcross(stretch: readonly CleanRow[], secrets: SecretSet): void {
  const [first, ...others] = stretch;
  if (first === undefined || others.length === 0) return;
  const whole = redact(stretch.map((piece) => textOf(piece.row.event)).join(''), secrets);
  if (whole === stretch.map((piece) => textOf(piece.event)).join('')) return;
  first.event = { ...first.event, text: whole };
  for (const piece of others) piece.event = { ...piece.event, text: '' };
}

/** Rows whose texts a viewer joins: deltas of one block, one turn's reasoning, one tool's output. */
function stretches(rows: readonly CleanRow[]): Iterable<readonly CleanRow[]> {
  const open = new Map<string, CleanRow[]>();
  const done: CleanRow[][] = [];
  for (const row of rows) {
    const { event } = row.row;
    if (event['kind'] === 'turn_reset') {
      // What was voided and what comes instead are never joined.
      const prefix = keyOf(event['turnId']);
      for (const [key, stretch] of open) {
        if (!key.startsWith(prefix)) continue;
        done.push(stretch);
        open.delete(key);
      }
      continue;
    }
    const key = stretchOf(event);
    if (key === undefined) continue;
    const stretch = open.get(key);
    if (stretch === undefined) open.set(key, [row]);
    else stretch.push(row);
  }
  return [...done, ...open.values()];
}

function stretchOf(event: Row['event']): string | undefined {
  const { kind, turnId, text } = event;
  if (typeof text !== 'string') return undefined;
  switch (kind) {
    case 'text_delta':
      return keyOf(turnId, kind, event['blockId']);
    case 'reasoning_delta':
      return keyOf(turnId, kind);
    case 'tool_output_delta':
      return keyOf(turnId, kind, event['toolCallId'], event['stream']);
    default:
      return undefined;
  }
}

/** NUL can't occur in a sensible id, and a hostile one only joins its own texts. */
function keyOf(...parts: readonly unknown[]): string {
  return parts.map((part) => `${typeof part === 'string' ? part : ''}\0`).join('');
}

function textOf(event: Row['event']): string {
  return typeof event['text'] === 'string' ? event['text'] : '';
}
