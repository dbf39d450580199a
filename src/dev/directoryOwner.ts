// Whose directory is this? One process at a time may run a Redis on a directory: two of them would corrupt its data.
// The owner's file names a process so exactly (id and start) that a killed predecessor is told from a living one, also
// in a container where every start has the same process id. Not for directories on a network file system.

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';

const directoryOwner = z.object({
  pid: z.int(),
  /** Differs between processes that had the same id one after the other. */
  start: z.string(),
  /** Where its Redis listens. */
  socketPath: z.string(),
});

export type DirectoryOwner = Readonly<z.infer<typeof directoryOwner>>;

const OWNER_FILE = 'redis.owner.json';

/** Makes this process the owner, unless somebody's file is there: then that owner is returned, alive or not. */
export async function ownDirectory(dir: string, socketPath: string): Promise<DirectoryOwner | 'owned'> {
  const owner: DirectoryOwner = {
    pid: process.pid,
    start: (await processStart(process.pid)) ?? '',
    socketPath,
  };
  const draft = join(dir, `${OWNER_FILE}.${randomUUID()}`);
  await writeFile(draft, JSON.stringify(owner), { mode: 0o600 });
  try {
    // A link appears whole or not at all, and fails when the name is taken.
    await link(draft, join(dir, OWNER_FILE));
    return 'owned';
  } catch (error) {
    if (!isTaken(error)) throw error;
    const present = await readOwner(join(dir, OWNER_FILE));
    return present ?? (await ownDirectory(dir, socketPath));
  } finally {
    await rm(draft, { force: true });
  }
}

/** Whether the very process that wrote the file still lives. */
export async function ownerLives(owner: DirectoryOwner): Promise<boolean> {
  return (await processStart(owner.pid)) === owner.start;
}

/** Takes a dead owner's file away, and only that one: a living process may have come first. */
export async function disown(dir: string, owner: DirectoryOwner): Promise<void> {
  const file = join(dir, OWNER_FILE);
  const aside = join(dir, `${OWNER_FILE}.${randomUUID()}`);
  try {
    await rename(file, aside);
  } catch {
    return;
  }
  const moved = await readOwner(aside);
  if (moved?.pid !== owner.pid || moved.start !== owner.start) await link(aside, file).catch(() => undefined);
  await rm(aside, { force: true });
}

/** Gives the directory up; by its owner only. */
export async function releaseDirectory(dir: string): Promise<void> {
  await rm(join(dir, OWNER_FILE), { force: true });
}

async function readOwner(file: string): Promise<DirectoryOwner | null> {
  try {
    return directoryOwner.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch (error) {
    return isAbsent(error) ? null : UNREADABLE;
  }
}

/** A file that says nothing is a dead owner's. */
const UNREADABLE: DirectoryOwner = { pid: 0, start: 'unreadable', socketPath: '' };

/** When a process started, in words that only that process has; null when there is no such process. */
async function processStart(pid: number): Promise<string | null> {
  try {
    const [stat, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
    ]);
    // Fields 3 and 22 of proc(5), counted from behind the command, which may hold spaces and brackets.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A zombie has ended; only nobody has asked for its exit code.
    return fields[0] === 'Z' ? null : `${boot.trim()}:${fields[19] ?? ''}`;
  } catch {
    return process.platform === 'linux' ? null : processStartByPs(pid);
  }
}

async function processStartByPs(pid: number): Promise<string | null> {
  try {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'lstart=', '-p', String(pid)], {
      timeout: 5_000,
    });
    return stdout.trim() === '' ? null : stdout.trim();
  } catch {
    return null;
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EEXIST';
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
