import { describe, expect, it } from 'vitest';
import { encodeWatchLine, parseWatchLine, type WatchLine } from '../../../src/contract/fleetCalls.js';
import { encodeHandOver, parseHandOver, type HandOver } from '../../../src/contract/handOver.js';

const HAND_OVER: HandOver = {
  v: 1,
  runId: 'run_q7',
  workerId: 'rnr_1/as_1',
  gateway: { socketPath: '/run/g.sock', bearer: 'bearer-hunter22' },
  workspaceDir: '/w',
  hostSocketDir: '/h',
  programRoot: '/p',
  sdkDir: '/sdk',
  nodePath: null,
  vcpus: 0.5,
  stopGraceMs: 30_000,
  debug: false,
};

describe('a hand-over', () => {
  it('is one line, and reads back', () => {
    const line = encodeHandOver({ ...HAND_OVER, workspaceDir: '/w/with\nbreak' });
    expect(line.indexOf('\n')).toBe(line.length - 1);
    expect(parseHandOver(line)).toEqual({ ...HAND_OVER, workspaceDir: '/w/with\nbreak' });
  });

  it.each([
    ['not json at all', 'is not JSON'],
    ['[]', 'the body must be an object'],
    [JSON.stringify({ ...HAND_OVER, v: 2 }), 'v must be 1'],
    [
      JSON.stringify({ ...HAND_OVER, gateway: { socketPath: '/s', bearer: '' } }),
      'gateway.bearer must not be empty',
    ],
    [JSON.stringify({ ...HAND_OVER, nodePath: undefined }), 'nodePath must be a string or null'],
    [JSON.stringify({ ...HAND_OVER, vcpus: 0 }), 'vcpus must be a number above 0'],
    [JSON.stringify({ ...HAND_OVER, stopGraceMs: -1 }), 'stopGraceMs must be an integer'],
  ])('says what is wrong with it: %#', (line, problem) => {
    expect(() => parseHandOver(line)).toThrow(problem);
  });

  it('never shows the bearer, not even when it is cut short', () => {
    const line = encodeHandOver(HAND_OVER);
    for (let length = 0; length < line.length - 2; length += 1) {
      expect(() => parseHandOver(line.slice(0, length))).toThrow('hand-over');
      expect(() => parseHandOver(line.slice(0, length))).not.toThrow(/hunter/);
    }
  });
});

describe('a line of the watch', () => {
  it.each<WatchLine>([
    { t: 'alive', ttl_ms: 2_000 },
    { t: 'stop', reason: 'cancelled' },
    { t: 'stop', reason: 'credit_exhausted' },
  ])('reads back: %j', (line) => {
    expect(parseWatchLine(encodeWatchLine(line))).toEqual(line);
  });

  it.each([
    '',
    '{',
    'null',
    '[]',
    '{"t":"soon"}',
    '{"t":"alive"}',
    '{"t":"alive","ttl_ms":-1}',
    '{"t":"stop","reason":"x"}',
  ])('is skipped when it is of no kind that we know: %j', (line) => expect(parseWatchLine(line)).toBeNull());
});
