// The bounds of unpacking, which real archives are far away from.

import { mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ArchiveLimits, unpackArchive } from '../../../src/runtime/archive.js';
import { archiveOf, tarOf } from './tarball.js';

let dir: string;
let root: string;

beforeEach(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), 'ar')));
  root = await realpath(await mkdtemp(join(dir, 'root')));
});

afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

async function unpacked(archive: Buffer, limits: Partial<ArchiveLimits> = {}): Promise<void> {
  const path = join(dir, 'a.tgz');
  await writeFile(path, archive);
  await unpackArchive(path, root, limits);
}

const THREE = ['a', 'b', 'c'].map((path) => ({ path, content: 'x'.repeat(10) }));

test('files, empty ones and directories come out as they went in', async () => {
  await unpacked(
    archiveOf([
      ...THREE,
      { path: 'd', type: 'Directory' },
      { path: 'd/e/empty' },
      { path: 'long', content: 'y'.repeat(100_000) },
    ]),
  );
  expect((await readdir(root)).sort()).toEqual(['a', 'b', 'c', 'd', 'long']);
  expect(await readFile(join(root, 'long'), 'utf8')).toHaveLength(100_000);
  expect((await stat(join(root, 'd/e/empty'))).size).toBe(0);
});

test('more members than the bound are refused', async () => {
  await expect(unpacked(archiveOf(THREE), { entries: 2 })).rejects.toMatchObject({
    code: 'PROGRAM_INTEGRITY',
    message: "The program's archive has more than 2 members.",
  });
});

test('more bytes than the bound are refused before they are written', async () => {
  await expect(unpacked(archiveOf(THREE), { bytes: 25 })).rejects.toMatchObject({
    code: 'PROGRAM_INTEGRITY',
  });
  expect(await readdir(root)).toEqual(['a', 'b']);
});

test('what follows the end mark counts too: a small archive can not decompress without end', async () => {
  const bomb = gzipSync(Buffer.concat([tarOf(THREE), Buffer.alloc(4 * 1024 * 1024)]));
  await expect(unpacked(bomb, { bytes: 1024, entries: 10 })).rejects.toMatchObject({
    code: 'PROGRAM_INTEGRITY',
    message: "The program's archive unpacks to more than 1024 bytes.",
  });
});
