// Directories of attempts on a real file system: created private, kept apart, gone afterwards.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
  chownSync,
  readFileSync,
} from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { WorkDirectory } from '../../../src/executor/workspace.js';

const made: string[] = [];

function scratch(): string {
  const path = mkdtempSync(join(tmpdir(), 'bwf-workspace-'));
  made.push(path);
  return path;
}

afterEach(() => {
  for (const path of made.splice(0)) execFileSync('rm', ['-rf', path]);
});

describe('the directories of an attempt', () => {
  it('exist, are empty, private to this user, and apart from each other', async () => {
    const work = new WorkDirectory(join(scratch(), 'deep', 'work'));
    const run = await work.create('run_1', 'a1');
    expect(readdirSync(run.root).sort()).toEqual(['program', 'tmp', 'workspace']);
    for (const path of [run.root, dirname(run.root), run.workspace, run.tmp, run.program]) {
      expect(statSync(path).mode & 0o777).toBe(0o700);
    }
    expect(run.program.startsWith(`${run.workspace}/`)).toBe(false);
  });

  it('are new for each attempt, so executors that share a work directory leave each other alone (R2)', async () => {
    const path = scratch();
    const ours = await new WorkDirectory(path).create('run_1', 'a1');
    const theirs = await new WorkDirectory(path).create('run_1', 'a2');
    writeFileSync(join(theirs.workspace, 'live'), 'work');
    await new WorkDirectory(path).prepare();
    await ours.remove();
    expect(readFileSync(join(theirs.workspace, 'live'), 'utf8')).toBe('work');
  });

  it('are new ones for an attempt of the same number, whatever a crash left of the first', async () => {
    const work = new WorkDirectory(scratch());
    const first = await work.create('run_1', '1');
    writeFileSync(join(first.workspace, 'stale'), '');
    const second = await work.create('run_1', '1');
    expect(readdirSync(second.workspace)).toEqual([]);
    expect(existsSync(join(first.workspace, 'stale'))).toBe(true);
  });

  it.each(['..', '.', '', 'a/b', '../../etc', 'a\\b', 'a\0b', 'x'.repeat(201)])(
    'are refused for the run id %j, and nothing is created (R13)',
    async (runId) => {
      const path = scratch();
      await expect(new WorkDirectory(path).create(runId, 'a1')).rejects.toMatchObject({
        code: 'UNSAFE_ID',
      });
      expect(existsSync(join(path, 'runs')) ? readdirSync(join(path, 'runs')) : []).toEqual([]);
    },
  );

  it('are named by their real path, when the work directory is reached through a link', async () => {
    const path = scratch();
    mkdirSync(join(path, 'real'));
    symlinkSync(join(path, 'real'), join(path, 'link'));
    const run = await new WorkDirectory(join(path, 'link')).create('run_1', 'a1');
    expect(dirname(run.root)).toBe(join(path, 'real', 'runs'));
  });
});

describe('removal', () => {
  it('takes everything of the attempt, may be repeated, and never follows a link', async () => {
    const path = scratch();
    writeFileSync(join(path, 'precious'), 'keep');
    const run = await new WorkDirectory(path).create('run_1', 'a1');
    symlinkSync(path, join(run.workspace, 'up'));
    symlinkSync(join(path, 'precious'), join(run.workspace, 'file'));
    writeFileSync(join(run.tmp, 't'), 'x');
    expect(await run.remove()).toEqual({ outcome: 'removed' });
    expect(await run.remove()).toEqual({ outcome: 'removed' });
    expect(readdirSync(join(path, 'runs'))).toEqual([]);
    expect(readFileSync(join(path, 'precious'), 'utf8')).toBe('keep');
  });

  it('takes directories that their owner may not write to or read (P45)', async () => {
    const path = scratch();
    await asOrdinaryUser(path, async () => {
      const run = await new WorkDirectory(path).create('run_1', 'a1');
      const cache = join(run.workspace, 'cache');
      mkdirSync(join(cache, 'sealed'), { recursive: true });
      writeFileSync(join(cache, 'sealed', 'f'), 'x');
      symlinkSync(path, join(cache, 'up'));
      chmodSync(join(cache, 'sealed'), 0o000);
      chmodSync(cache, 0o555);
      chmodSync(path, 0o755);
      expect(await run.remove()).toEqual({ outcome: 'removed' });
      expect(existsSync(run.root)).toBe(false);
      expect(statSync(path).mode & 0o777).toBe(0o755);
    });
  });

  it('takes a tree that is deeper than a path may be long', async () => {
    const run = await new WorkDirectory(scratch()).create('run_1', 'a1');
    const digger = `for (let i = 0; i < 40; i += 1) {
      require('fs').mkdirSync('d'.repeat(200));
      process.chdir('d'.repeat(200));
    }`;
    execFileSync(process.execPath, ['-e', digger], { cwd: run.workspace });
    expect(await run.remove()).toEqual({ outcome: 'removed' });
    expect(existsSync(run.root)).toBe(false);
  });

  it('says what is left when the system refuses', async () => {
    const path = scratch();
    const run = await new WorkDirectory(path).create('run_1', 'a1');
    chmodSync(path, 0o755);
    await asOrdinaryUser(null, async () => {
      expect(await run.remove()).toMatchObject({
        outcome: 'left',
        path: run.root,
        error: expect.any(Error) as Error,
      });
    });
    expect(existsSync(run.root)).toBe(true);
  });
});

describe('the work directory', () => {
  it('is made when it is missing', async () => {
    const path = join(scratch(), 'a', 'b');
    await new WorkDirectory(path).prepare();
    expect(readdirSync(join(path, 'runs'))).toEqual([]);
  });

  it('is refused at start, with a way out, when it can not be written to', async () => {
    const path = scratch();
    writeFileSync(join(path, 'file'), '');
    await expect(new WorkDirectory(join(path, 'file')).prepare()).rejects.toMatchObject({
      code: 'WORK_DIR_UNUSABLE',
      message: expect.stringContaining(join(path, 'file')) as string,
      hint: expect.stringContaining('--work-dir') as string,
    });
  });
});

/** Permissions bind everybody but root, so as root the work is done as another user. */
async function asOrdinaryUser(owned: string | null, work: () => Promise<void>): Promise<void> {
  const NOBODY = 65_534;
  if (process.geteuid?.() !== 0) {
    if (owned === null) return; // Only root can make a directory that isn't its own.
    await work();
    return;
  }
  if (owned !== null) chownSync(owned, NOBODY, NOBODY);
  process.setegid?.(NOBODY);
  process.seteuid?.(NOBODY);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
    if (owned !== null) chownSync(owned, 0, 0);
  }
}
