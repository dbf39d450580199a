import { describe, expect, it } from 'vitest';
import {
  foldRows,
  RunFold,
  type FoldRow,
  type FoldedTurn,
  type ResetReading,
} from '../../../src/contract/fold.js';
import { parseRunEventLenient } from '../../../src/contract/events.js';
import { named, seededRandom, vectorCases, type VectorCase } from './vectors.js';

interface ExpectedTurn {
  readonly text: string;
  readonly blocks: readonly { readonly blockId: string; readonly text: string }[];
  readonly reasoning: string;
  readonly tool_calls: Readonly<Record<string, { readonly state: string; readonly output: string }>>;
  readonly ended: string | null;
}

interface FoldCase extends VectorCase {
  readonly rows: readonly FoldRow[];
  readonly turns: Readonly<Record<string, ExpectedTurn>>;
  readonly literal_turns?: Readonly<Record<string, ExpectedTurn>>;
}

function shown(turn: FoldedTurn): ExpectedTurn {
  const texts = turn.items.filter((item) => item.kind === 'text');
  const tools = turn.items.filter((item) => item.kind === 'tool');
  return {
    text: texts.map(({ text }) => text).join(''),
    blocks: texts.filter(({ text }) => text !== '').map(({ blockId, text }) => ({ blockId, text })),
    reasoning: turn.items.map((item) => (item.kind === 'reasoning' ? item.text : '')).join(''),
    tool_calls: Object.fromEntries(tools.map(({ id, state, output }) => [id, { state, output }])),
    ended: turn.end?.reason ?? null,
  };
}

function foldedTurns(rows: readonly FoldRow[], reading: ResetReading): Record<string, ExpectedTurn> {
  const parsed = rows.map(({ cursor, event }) => ({ cursor, event: parseRunEventLenient(event) }));
  return Object.fromEntries([...foldRows(parsed, { reading }).turns].map(([id, turn]) => [id, shown(turn)]));
}

const cases = vectorCases<FoldCase>('reset-fold', 32);

describe('rows with resets, folded', () => {
  it.each(named(cases))('%s', (_name, { rows, turns }) => {
    expect(foldedTurns(rows, 'current-call')).toEqual(turns);
  });
});

describe('rows with resets, folded in the widest reading', () => {
  it.each(named(cases))('%s', (_name, { rows, turns, literal_turns }) => {
    expect(foldedTurns(rows, 'whole-turn')).toEqual(literal_turns ?? turns);
  });
});

/** Rows of one turn in order, as short as a test wants to read them. */
function rowsOf(...events: readonly (readonly [string, Readonly<Record<string, unknown>>?])[]): FoldRow[] {
  return events.map(([kind, fields], index) => ({
    cursor: index + 1,
    event: { turnId: 'A', kind, ...fields },
  }));
}

function text(blockId: string, value: string): readonly [string, Readonly<Record<string, unknown>>] {
  return ['text_delta', { blockId, text: value }];
}

describe('a fold, row by row', () => {
  it('says how much a reset took back', () => {
    const fold = new RunFold();
    const effects = rowsOf(
      ['reasoning_delta', { text: 'hm' }],
      text('b', 'Moss'),
      ['turn_reset'],
      ['turn_reset'],
    ).map((row) => fold.apply(row));
    expect(effects).toEqual([
      { effect: 'applied' },
      { effect: 'applied' },
      { effect: 'reset', turnId: 'A', textChars: 4, reasoningChars: 2 },
      { effect: 'reset', turnId: 'A', textChars: 0, reasoningChars: 0 },
    ]);
  });

  it('ignores rows that come late or twice, and rows without a cursor', () => {
    const fold = new RunFold();
    const [first, second] = rowsOf(text('b', 'one'), text('b', 'two'));
    if (first === undefined || second === undefined) throw new Error('no rows');
    expect([second, second, first, { ...first, cursor: NaN }].map((row) => fold.apply(row).effect)).toEqual([
      'applied',
      'ignored',
      'ignored',
      'ignored',
    ]);
    expect(fold.lastCursor).toBe(2);
  });

  it('moves on over a row that the lenient reader skipped', () => {
    const fold = new RunFold();
    expect(fold.apply({ cursor: 5, event: null })).toEqual({ effect: 'applied' });
    expect(fold.lastCursor).toBe(5);
    expect(fold.turns.size).toBe(0);
  });

  it('closes a block of an earlier call that ends late, and gives its text no new place', () => {
    const { turns } = foldRows(
      rowsOf(text('b', 'x'), ['tool_call_start', { toolCallId: 't', toolName: 'grep' }], text('b', 'y'), [
        'text_end',
        { blockId: 'b' },
      ]),
    );
    expect(turns.get('A')?.items).toEqual([
      { kind: 'text', blockId: 'b', text: 'x', open: true },
      { kind: 'tool', id: 't', name: 'grep', state: 'started', output: '' },
      { kind: 'text', blockId: 'b', text: 'y', open: false },
    ]);
  });

  it('closes what stayed open when the turn ends', () => {
    const { turns } = foldRows(
      rowsOf(text('b', 'x'), ['compaction_started', { tokens: 9 }], text('b', 'y'), [
        'turn_ended',
        { reason: 'error', error: { code: 'X' } },
      ]),
    );
    const turn = turns.get('A');
    expect(turn?.items.filter((item) => item.kind === 'text').map(({ open }) => open)).toEqual([
      false,
      false,
    ]);
    expect(turn?.end).toEqual({ reason: 'error', error: { code: 'X' } });
  });

  it('keeps a compaction as one note, and its start as a boundary', () => {
    const { turns } = foldRows(
      rowsOf(
        text('b', 'kept'),
        ['compaction_started', { tokens: 9 }],
        ['turn_reset'],
        ['compaction_ended', { tokens: 4 }],
      ),
    );
    expect(turns.get('A')?.items).toMatchObject([
      { kind: 'text', text: 'kept' },
      { kind: 'compaction', started: { tokens: 9 }, ended: { tokens: 4 } },
    ]);
  });

  it.each(['running', 'completed', 'failed', 'cancelled'])(
    'closes turns without an end at the status %s',
    (status) => {
      const fold = foldRows(rowsOf(text('b', 'x')));
      fold.apply({ cursor: 9, event: { turnId: 'run', kind: 'run_status', status } });
      expect(fold.turns.get('A')?.end).toEqual({ reason: 'interrupted' });
    },
  );

  it('leaves open turns alone while the run only waits, and ended ones as they ended', () => {
    const waiting = foldRows(rowsOf(text('b', 'x')));
    waiting.apply({ cursor: 9, event: { turnId: 'run', kind: 'run_status', status: 'awaiting_input' } });
    expect(waiting.turns.get('A')?.end).toBeNull();
    const ended = foldRows(rowsOf(['turn_ended', { reason: 'complete' }]));
    ended.apply({ cursor: 9, event: { turnId: 'run', kind: 'run_status', status: 'failed' } });
    expect(ended.turns.get('A')?.end?.reason).toBe('complete');
  });

  it('starts a turn afresh when it is started again', () => {
    const { turns } = foldRows(
      rowsOf(
        text('b', 'old'),
        ['turn_started', { agentId: 'agent-2', agentName: 'scout' }],
        text('b', 'new'),
      ),
    );
    expect(turns.get('A')).toMatchObject({
      agentId: 'agent-2',
      agentName: 'scout',
      items: [{ text: 'new' }],
    });
  });
});

describe('hostile rows', () => {
  it('never make it throw, whatever they hold', () => {
    const random = seededRandom(11);
    const pick = <T>(values: readonly T[]): T | undefined => values[Math.floor(random() * values.length)];
    const kinds = [
      'turn_started',
      'text_start',
      'text_delta',
      'text_end',
      'reasoning_delta',
      'turn_reset',
      'turn_ended',
      'tool_call_start',
      'tool_call_result',
      'tool_output_delta',
      'compaction_started',
      'compaction_ended',
      'run_status',
      '__proto__',
      'citation',
      7,
      null,
    ];
    const odd = ['__proto__', 'constructor', '', null, 7, {}, [], undefined, 'running', 'x'];
    const fold = new RunFold();
    const wide = new RunFold({ reading: 'whole-turn' });
    for (let round = 1; round < 20_000; round += 1) {
      const fields = [
        'turnId',
        'blockId',
        'text',
        'toolCallId',
        'toolName',
        'status',
        'reason',
        'agentId',
        'result',
      ];
      const event = { kind: pick(kinds), ...Object.fromEntries(fields.map((field) => [field, pick(odd)])) };
      const row = { cursor: round, event: random() < 0.05 ? pick(odd) : event };
      fold.apply(row);
      wide.apply(row);
    }
    expect(fold.turns.size).toBeGreaterThan(2);
    expect([...wide.turns.values()].every(({ end }) => end === null || typeof end.reason === 'string')).toBe(
      true,
    );
    expect(({} as Record<string, unknown>)['text']).toBeUndefined();
  });

  it('cost the same per row however many blocks stand open', () => {
    const fold = new RunFold();
    const count = 50_000;
    for (let n = 1; n <= count; n += 1)
      fold.apply({ cursor: n, event: { turnId: 'A', kind: 'text_start', blockId: `b${n}` } });
    for (let n = 1; n <= count; n += 1)
      fold.apply({ cursor: count + n, event: { turnId: 'A', kind: 'text_end', blockId: `b${n}` } });
    expect(fold.turns.get('A')?.items).toHaveLength(count);
  });
});
