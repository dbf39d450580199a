import { describe, expect, it } from 'vitest';
import { LineReader, LineTooLongError } from '../../../src/contract/lines.js';
import { seededRandom } from './vectors.js';

/** Lines of a text that arrives cut at the given places. */
function linesOf(bytes: Uint8Array, cuts: readonly number[]): string[] {
  const reader = new LineReader();
  const lines: string[] = [];
  let from = 0;
  for (const cut of [...cuts, bytes.length]) {
    lines.push(...reader.push(bytes.subarray(from, cut)));
    from = cut;
  }
  return [...lines, ...reader.end()];
}

describe('lines out of chunks', () => {
  it('are the same wherever the stream was cut', () => {
    const bytes = Buffer.from('{"a":"é🌿"}\r\n\n  \n\uFEFF{"b":1}\u00a0\nlast');
    const expected = ['{"a":"é🌿"}', '{"b":1}', 'last'];
    for (let cut = 0; cut <= bytes.length; cut += 1) expect(linesOf(bytes, [cut])).toEqual(expected);
    const random = seededRandom(3);
    for (let round = 0; round < 300; round += 1) {
      const cuts = Array.from({ length: 6 }, () => Math.floor(random() * bytes.length)).sort((a, b) => a - b);
      expect(linesOf(bytes, cuts)).toEqual(expected);
    }
  });

  it('hold a replacement character for bytes that are no UTF-8', () => {
    expect(linesOf(Buffer.from([0x61, 0xff, 0x0a]), [])).toEqual(['a\ufffd']);
    expect(linesOf(Buffer.from([0xc3]), [])).toEqual(['\ufffd']);
  });

  it('end at the bound, however the bytes come', () => {
    const reader = new LineReader({ maxBytes: 10 });
    expect([...reader.push(Buffer.from(`${'x'.repeat(10)}\n`))]).toEqual(['x'.repeat(10)]);
    expect([...reader.push(Buffer.from('123456'))]).toEqual([]);
    expect(() => [...reader.push(Buffer.from('12345'))]).toThrow(LineTooLongError);
    expect(() => [...new LineReader({ maxBytes: 10 }).push(Buffer.from(`${'x'.repeat(11)}\n`))]).toThrow(
      LineTooLongError,
    );
  });
});
