import { describe, expect, it } from 'vitest';
import { fitting, Suspects, type Sized } from '../../../src/events/batch.js';

const row = (frame: string): Sized => ({ frame, bytes: Buffer.byteLength(frame) });
const bodyBytes = (rows: readonly Sized[]): number =>
  Buffer.byteLength(JSON.stringify({ frames: rows.map(({ frame }) => frame) }));

describe('a batch', () => {
  it('takes every row while the body is within its bound', () => {
    expect(fitting([row('{"a":1}'), row('{"b":2}')], 1_000)).toBe(2);
    expect(fitting([], 1_000)).toBe(0);
  });

  it('counts quotes, backslashes and what is not ASCII as the body will have them', () => {
    const rows = ['{"t":"\\\\"}', '{"t":"é€🚢"}', '\u0001\u0002', '"'.repeat(40), 'plain'].map(row);
    for (let count = 1; count <= rows.length; count++) {
      const exact = bodyBytes(rows.slice(0, count));
      expect(fitting(rows, exact)).toBe(count);
      expect(fitting(rows, exact - 1)).toBe(Math.max(1, count - 1));
    }
  });

  it('has a row that is too large even alone: the refusal is the platform’s', () => {
    expect(fitting([row('x'.repeat(5_000)), row('y')], 1_000)).toBe(1);
  });
});

/** Ships rows of which some are refused in whatever company; what was sent, and what was found. */
function ship(count: number, bad: ReadonlySet<number>, maxRows: number) {
  const suspects = new Suspects();
  let lane = Array.from({ length: count }, (_, index) => index);
  const accepted: number[] = [];
  const alone: number[] = [];
  let calls = 0;
  while (lane.length > 0) {
    if (++calls > 10_000) throw new Error('The search has no end.');
    const batch = lane.slice(0, suspects.most(maxRows));
    if (!batch.some((each) => bad.has(each))) {
      suspects.accepted(batch.length);
      accepted.push(...batch);
    } else {
      if (suspects.refused(batch.length) === 'narrowed') continue;
      alone.push(...batch);
    }
    lane = lane.slice(batch.length);
  }
  return { accepted, alone, calls };
}

describe('the search for a refused row', () => {
  it('finds each one alone, wherever it is, and ships all others in their order', () => {
    for (const bad of [[], [0], [99], [50], [0, 1], [98, 99], [3, 30, 31, 77], [...Array(100).keys()]]) {
      const { accepted, alone } = ship(100, new Set(bad), 64);
      expect(alone).toEqual(bad);
      expect(accepted).toEqual([...Array(100).keys()].filter((each) => !bad.includes(each)));
    }
  });

  it('takes as many calls as halving does, and goes on with whole batches', () => {
    expect(ship(10_000, new Set([777]), 1_000).calls).toBeLessThanOrEqual(
      10 + 2 * Math.ceil(Math.log2(1_000)),
    );
  });
});
