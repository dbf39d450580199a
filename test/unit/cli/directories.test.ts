import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { temporaryDirectory, usableDirectory } from '../../../src/cli/directories.js';

describe('a directory that a command needs', () => {
  let root = '';
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'bwf-directories-'));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const usable = (dir: string): Promise<void> => usableDirectory(dir, 'work directory', 'Name another.');

  it('is made with those above it, for this user alone', async () => {
    await usable(join(root, 'a/b/c'));
    await usable(join(root, 'a/b/c'));
    expect((await stat(join(root, 'a/b/c'))).mode & 0o777).toBe(0o700);
  });

  it.each(['/dev/null/x', '/proc/x/y'])('is refused in words at %s, and does not hang', async (dir) => {
    await expect(usable(dir)).rejects.toMatchObject({
      code: 'DIRECTORY_UNUSABLE',
      message: expect.stringContaining(`The work directory ${dir} can't be used (`) as string,
      hint: 'Name another.',
    });
  });

  it('is refused where a file stands in its way', async () => {
    await writeFile(join(root, 'file'), '');
    await expect(usable(join(root, 'file'))).rejects.toMatchObject({ code: 'DIRECTORY_UNUSABLE' });
    await expect(usable(join(root, 'file/x'))).rejects.toMatchObject({ code: 'DIRECTORY_UNUSABLE' });
  });
});

describe('the directory for temporary files', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  it.each([
    ['/no/such/place', "can't be used (ENOENT)"],
    [`/tmp/${'long'.repeat(20)}`, 'has too long a name for sockets'],
  ])('that is %s is refused by the name of its variable', async (dir, words) => {
    vi.stubEnv('TMPDIR', dir);
    await expect(temporaryDirectory('bwf-test-')).rejects.toMatchObject({
      message: expect.stringContaining(words) as string,
      hint: expect.stringContaining('TMPDIR') as string,
    });
  });
});
