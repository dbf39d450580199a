// Which processes count as part of a sandbox, told from tables that a real host would be hard put to produce: reused
// pids, ancestors of our own, processes that can't be killed.

import { describe, expect, it } from 'vitest';
import { killTree } from '../../../../src/executor/sandbox/process/killTree.js';
import type { ProcessEntry, ProcessTable } from '../../../../src/executor/sandbox/process/processTable.js';
import { findTree } from '../../../../src/executor/sandbox/process/processTree.js';

const MARK = 'BWF_SANDBOX=s1';
const OURS = process.pid;

/** `[pid, ppid, sid, startedAt]`; process groups follow sessions. Pids are far above what Linux gives out. */
type Row = readonly [pid: number, ppid: number, sid: number, startedAt: number];

const [ROOT, CHILD, GRANDCHILD, STRANGER] = [2 ** 30, 2 ** 30 + 1, 2 ** 30 + 2, 2 ** 30 + 3] as const;

const US: readonly Row[] = [
  [1, 0, 1, 0],
  [OURS - 0.5, 1, OURS - 0.5, 5],
  [OURS, OURS - 0.5, OURS - 0.5, 10],
];

function table(rows: readonly Row[], markedPids: readonly number[] = []): ProcessTable {
  const entries = [...US, ...rows].map(([pid, ppid, sid, startedAt]): ProcessEntry => ({
    pid,
    ppid,
    sid,
    pgid: sid,
    startedAt,
  }));
  return {
    list: () => Promise.resolve(entries),
    startOf: () => null,
    isStill: () => true,
    marked: (among) => Promise.resolve(among.filter((entry) => markedPids.includes(entry.pid))),
  };
}

async function pidsOf(
  rows: readonly Row[],
  markedPids: readonly number[] = [],
  startedAt: number | null = 100,
) {
  const found = await findTree(table(rows, markedPids), { root: { pid: ROOT, startedAt }, mark: MARK });
  return found.map((entry) => entry.pid).sort((a, b) => a - b);
}

describe('the processes of a sandbox', () => {
  it('are its first process and all that descends from it, in whatever session', async () => {
    const rows: Row[] = [
      [GRANDCHILD, CHILD, GRANDCHILD, 102],
      [CHILD, ROOT, CHILD, 101],
      [ROOT, OURS, ROOT, 100],
      [STRANGER, 1, STRANGER, 103],
    ];
    expect(await pidsOf(rows)).toEqual([ROOT, CHILD, GRANDCHILD]);
  });

  it('are members of its session after it has died', async () => {
    expect(await pidsOf([[CHILD, 1, ROOT, 101]])).toEqual([CHILD]);
  });

  it('are what carries its mark, with all that this has started', async () => {
    const rows: Row[] = [
      [CHILD, 1, CHILD, 101],
      [GRANDCHILD, CHILD, CHILD, 102],
      [STRANGER, 1, STRANGER, 103],
    ];
    expect(await pidsOf(rows, [CHILD])).toEqual([CHILD, GRANDCHILD]);
  });

  it('are found by the mark alone when nothing else is known', async () => {
    const rows: Row[] = [
      [CHILD, 1, CHILD, 50],
      [STRANGER, 1, STRANGER, 103],
    ];
    const found = await findTree(table(rows, [CHILD]), { mark: MARK });
    expect(found.map((entry) => entry.pid)).toEqual([CHILD]);
  });

  it('are what was found before and still lives, whatever has become of its parent', async () => {
    const child: ProcessEntry = { pid: CHILD, ppid: ROOT, sid: CHILD, pgid: CHILD, startedAt: 101 };
    const gone: ProcessEntry = { ...child, pid: STRANGER };
    const rows: Row[] = [
      [CHILD, 1, CHILD, 101],
      [GRANDCHILD, CHILD, GRANDCHILD, 102],
      [STRANGER, 1, STRANGER, 300],
    ];
    const evidence = { root: { pid: ROOT, startedAt: 100 }, mark: MARK };
    const found = await findTree(table(rows), evidence, [child, gone]);
    expect(found.map((entry) => entry.pid)).toEqual([CHILD, GRANDCHILD]);
  });

  it('are none of a process that was given the same pid later', async () => {
    const rows: Row[] = [
      [ROOT, 1, ROOT, 500],
      [CHILD, ROOT, ROOT, 501],
    ];
    expect(await pidsOf(rows)).toEqual([]);
  });

  it('are never older than the first one, nor than their parent', async () => {
    const rows: Row[] = [
      [ROOT, OURS, ROOT, 100],
      [CHILD, ROOT, CHILD, 99],
      [GRANDCHILD, ROOT, GRANDCHILD, 200],
      [STRANGER, GRANDCHILD, STRANGER, 150],
    ];
    expect(await pidsOf(rows, [CHILD])).toEqual([ROOT, GRANDCHILD]);
  });

  it('are never this process or one that it descends from, whatever the mark says', async () => {
    expect(await pidsOf([[ROOT, OURS, ROOT, 0]], [OURS, OURS - 0.5, 1], 0)).toEqual([ROOT]);
  });

  it('are told by parents and groups where the system shows neither sessions nor starts', async () => {
    const bare: ProcessTable = {
      ...table([]),
      list: () =>
        Promise.resolve([
          { pid: ROOT, ppid: OURS, pgid: ROOT, sid: null, startedAt: 1 },
          { pid: CHILD, ppid: 1, pgid: ROOT, sid: null, startedAt: 1 },
          { pid: STRANGER, ppid: 1, pgid: STRANGER, sid: null, startedAt: 1 },
        ]),
    };
    const found = await findTree(bare, { root: { pid: ROOT, startedAt: null }, mark: MARK });
    expect(found.map((entry) => entry.pid)).toEqual([ROOT, CHILD]);
  });
});

describe('killing a tree', () => {
  const evidence = { root: { pid: ROOT, startedAt: 100 }, mark: MARK };

  it('names what outlives it instead of waiting for ever (P25)', async () => {
    const survivors = await killTree(table([[ROOT, 1, ROOT, 100]]), evidence, { timeoutMs: 20 });
    expect(survivors.map((entry) => entry.pid)).toEqual([ROOT]);
  });

  it('is not done while one of them lives that nothing else ties to the sandbox any more', async () => {
    const orphan: ProcessEntry = { pid: CHILD, ppid: 1, sid: CHILD, pgid: CHILD, startedAt: 101 };
    const host = table([[CHILD, 1, CHILD, 101]]);
    expect(await killTree(host, evidence, { timeoutMs: 20 })).toEqual([]);
    expect(await killTree(host, evidence, { known: [orphan], timeoutMs: 20 })).toEqual([orphan]);
  });

  it('looks again when the system fails to list processes', async () => {
    let looks = 0;
    const flaky: ProcessTable = {
      ...table([]),
      list: () => {
        looks += 1;
        return looks < 3 ? Promise.reject(new Error('EMFILE')) : Promise.resolve([]);
      },
    };
    expect(await killTree(flaky, evidence)).toEqual([]);
    expect(looks).toBe(3);
  });

  it('proves nothing when processes can not be listed at all', async () => {
    const blind: ProcessTable = { ...table([]), list: () => Promise.reject(new Error('EMFILE')) };
    await expect(killTree(blind, evidence, { timeoutMs: 20 })).rejects.toThrow('EMFILE');
  });
});
