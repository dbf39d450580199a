// Lines out of chunks, wherever the cuts fall.

import { describe, expect, it } from 'vitest';
import { LogLines, MAX_LINE_LENGTH } from '../../../../src/executor/sandbox/process/logLines.js';

function linesOf(...chunks: readonly (string | Buffer)[]): readonly string[] {
  const lines: string[] = [];
  const reader = new LogLines((line) => lines.push(line));
  for (const chunk of chunks) reader.push(Buffer.from(chunk));
  reader.end();
  return lines;
}

describe('log lines', () => {
  it('are the same wherever the stream was cut, inside a character too', () => {
    const bytes = Buffer.from('über\r\n\nzwei ✓\nrest');
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      expect(linesOf(bytes.subarray(0, cut), bytes.subarray(cut))).toEqual(['über', '', 'zwei ✓', 'rest']);
    }
  });

  it('include a last line without its end, and none after an end', () => {
    expect(linesOf('a\nb')).toEqual(['a', 'b']);
    expect(linesOf('a\n')).toEqual(['a']);
    expect(linesOf()).toEqual([]);
  });

  it('are cut at the bound, say how much is missing, and the next one is whole again', () => {
    const exact = 'x'.repeat(MAX_LINE_LENGTH);
    expect(linesOf(`${exact}\n`)).toEqual([exact]);
    expect(linesOf(exact, 'yy', `y\nnext\n`)).toEqual([`${exact} … (3 more characters)`, 'next']);
  });

  it('replace what is no text', () => {
    expect(linesOf(Buffer.from([0xff, 0x41, 0xc3]))).toEqual(['\ufffdA\ufffd']);
  });
});
