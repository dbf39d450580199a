import { describe, expect, it } from 'vitest';
import { columnsOf, JsonRows, LiveRows, type ShownView } from '../../../src/cli/devOutput.js';
import type { StoredRow } from '../../../src/dev/controlPlane/controlPlane.js';

const row = (cursor: number): StoredRow => ({ cursor, event: { kind: 'phase', name: String(cursor) } });

const VIEW: ShownView = {
  status: 'completed',
  output: { greeting: 'hi' },
  error: null,
  queued_at: 1_000,
  claimed_at: 1_010,
  first_event_at: 1_020,
  finalized_at: 1_030,
};

function printed(show: (rows: JsonRows) => void): readonly unknown[] {
  const lines: string[] = [];
  show(new JsonRows((text) => lines.push(text)));
  return lines.map((line) => {
    const { cursor, result } = JSON.parse(line) as { cursor?: number; result?: unknown };
    return cursor ?? result;
  });
}

describe('stored rows as JSON lines', () => {
  const RESULT = { status: 'completed', output: { greeting: 'hi' }, error: null };

  it('come as they are stored, over several attempts, then the result', () => {
    const cursors = [1, 2, 3, 1_000_001, 1_000_002, 3_000_001];
    const lines = printed((rows) => {
      for (const cursor of cursors) rows.row('run', row(cursor));
      rows.end('run', VIEW, cursors.map(row));
    });
    expect(lines).toEqual([...cursors, RESULT]);
  });

  it('are all printed in rising order when one came late', () => {
    const lines = printed((rows) => {
      for (const cursor of [1, 3, 2, 1_000_001]) rows.row('run', row(cursor));
      rows.end('run', VIEW, [1, 2, 3, 1_000_001].map(row));
    });
    expect(lines).toEqual([1, 2, 3, 1_000_001, RESULT]);
  });

  it('are printed even when it is too late for their order', () => {
    const lines = printed((rows) => {
      for (const cursor of [1, 1_000_001, 2]) rows.row('run', row(cursor));
      rows.end('run', VIEW, [1, 2, 1_000_001].map(row));
    });
    expect(lines).toEqual([1, 1_000_001, 2, RESULT]);
  });
});

describe('the end of a run', () => {
  function said(runs: number, view: Partial<ShownView>): string {
    let text = '';
    const rows = new LiveRows((part) => (text += part), { columns: null, runs });
    rows.end('run-1', { ...VIEW, ...view });
    return text;
  }
  const failed = {
    status: 'failed',
    output: null,
    error: { code: 'LOST', message: 'gone', hint: 'Look.' },
  } as const;

  it('names output and failure of each of several runs', () => {
    expect(said(2, {})).toBe(
      'run-1 completed: claimed after 10 ms, first event 20 ms, end 30 ms\n  output: {"greeting":"hi"}\n',
    );
    expect(said(2, failed)).toContain('\n  error: LOST: gone\n  Look.\n');
  });

  it('leaves to the rows of a single run what they have said', () => {
    expect(said(1, failed)).not.toContain('LOST');
    expect(said(1, {})).not.toContain('greeting');
  });
});

describe('the width of a terminal', () => {
  it('is what it says, eighty when it does not know, and none off a terminal', () => {
    expect(columnsOf({ isTTY: true, columns: 120 })).toBe(120);
    expect(columnsOf({ isTTY: true, columns: 0 })).toBe(80);
    expect(columnsOf({ isTTY: true })).toBe(80);
    expect(columnsOf({ isTTY: false, columns: 120 })).toBeNull();
  });
});
