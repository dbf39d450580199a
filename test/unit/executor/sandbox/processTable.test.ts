// Reading the system's process table: the awkward names, states and lines.

import { describe, expect, it } from 'vitest';
import {
  parsePs,
  parseStat,
  systemProcessTable,
} from '../../../../src/executor/sandbox/process/processTable.js';

/** A line of /proc/PID/stat with the given state, thread count and start time. */
function stat(name: string, state: string, threads = 1): string {
  return `42 (${name}) ${state} 7 40 39 0 -1 4194304 118 0 0 0 0 0 0 0 20 0 ${threads} 0 103938 3133440 410 0\n`;
}

describe('a line of /proc', () => {
  it.each(['node', 'tmux: server', 'a) S 1 (b', '(sd-pam)', 'line\nbreak'])(
    'is read whatever the process calls itself: %j',
    (name) => {
      expect(parseStat(stat(name, 'S'))).toEqual({
        entry: { pid: 42, ppid: 7, pgid: 40, sid: 39, startedAt: 103_938 },
        alive: true,
      });
    },
  );

  it.each([
    ['R', 1, true],
    ['D', 1, true],
    ['T', 1, true],
    ['Z', 1, false],
    ['X', 0, false],
    ['Z', 3, true],
  ])('in state %s with %d threads tells a living process: %s', (state, threads, alive) => {
    expect(parseStat(stat('x', state, threads))?.alive).toBe(alive);
  });

  it('is nothing when it is empty or cut', () => {
    expect(parseStat('')).toBe(null);
    expect(parseStat('42 (node) S 7 40')).toBe(null);
  });
});

describe('the output of ps', () => {
  it('is read line by line, without the dead', () => {
    const text = `
    1     0     1 Ss   Mon Dec  1 04:04:33 2025
 4242     1  4242 S+   Mon Dec  1 04:12:33 2025
 4243  4242  4242 Z    Mon Dec  1 04:12:34 2025
garbage
`;
    expect(parsePs(text)).toEqual([
      { pid: 1, ppid: 0, pgid: 1, sid: null, startedAt: Date.parse('Dec 1 2025 04:04:33') },
      { pid: 4242, ppid: 1, pgid: 4242, sid: null, startedAt: Date.parse('Dec 1 2025 04:12:33') },
    ]);
  });
});

describe('the process table of this system', () => {
  it('shows this process, and knows it again', async () => {
    const table = systemProcessTable();
    const self = (await table.list()).find((entry) => entry.pid === process.pid);
    expect(self).toMatchObject({ ppid: process.ppid });
    if (self === undefined) return;
    expect(table.isStill(self)).toBe(true);
    expect(table.startOf(process.pid)).toBe(self.startedAt);
    expect(table.isStill({ ...self, startedAt: self.startedAt - 1 })).toBe(false);
  });
});
