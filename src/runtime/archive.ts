// Unpacking a program's archive (protocol/program.md 2). It guards against members that would land outside their
// directory or be something else than a file, a directory or a link inside, and against archives that grow without end:
// each is refused by its name, and nothing of it has been run by then. Links are made last, so that no file can be
// written through one. The digest has been checked before.

import { constants, createReadStream } from 'node:fs';
import { mkdir, open, realpath, symlink } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { ReadEntry } from 'tar';
import { isMachineFault } from './machineFault.js';
import { RunFailure } from './runFailure.js';

export interface ArchiveLimits {
  /** Of all files together, unpacked. Default 1 GiB. */
  readonly bytes: number;
  /** Default 100 000. */
  readonly entries: number;
}

const LIMITS: ArchiveLimits = { bytes: 1024 ** 3, entries: 100_000 };
/** Headers and padding of one member, generously. */
const OVERHEAD_PER_ENTRY = 4 * 1024;
const NAME_CHARS = 200;
const FILES: ReadonlySet<string> = new Set(['File', 'OldFile', 'ContiguousFile']);

/**
 * Unpacks a gzip tar into an existing empty directory.
 *
 * @param root absolute and real
 * @throws RunFailure `PROGRAM_INTEGRITY` that names the member; what the machine is at fault for, as it came
 */
export async function unpackArchive(
  archive: string,
  root: string,
  limits: Partial<ArchiveLimits> = {},
): Promise<void> {
  const { Parser } = await import('tar');
  const unpacking = new Unpacking(root, { ...LIMITS, ...limits });
  let work: Promise<void> = Promise.resolve();
  let failure: Error | undefined;
  const fail = (error: unknown): void => {
    failure ??= error instanceof Error ? error : new Error(String(error));
  };
  const parser = new Parser({
    strict: true,
    onReadEntry: (entry) => {
      // One after the other: the parser gives the next member only when this one has been read.
      work = work
        .then(() => unpacking.take(entry))
        .catch((error: unknown) => {
          fail(error);
          entry.resume();
        });
    },
  });
  const ended = new Promise<void>((resolveEnd, reject) => {
    parser.once('end', resolveEnd);
    parser.once('error', reject);
  });
  ended.catch(fail);
  try {
    await pipeline(createReadStream(archive), createGunzip(), async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) {
        try {
          unpacking.count(chunk.byteLength);
          if (!parser.write(chunk))
            await Promise.race([new Promise((drained) => parser.once('drain', drained)), ended]);
        } catch (error) {
          // The pipeline may report how it was torn down instead.
          fail(error);
        }
        if (failure !== undefined) throw failure;
      }
    });
    parser.end();
    await ended;
    await work;
    if (failure !== undefined) throw failure;
    await unpacking.link();
  } catch (error) {
    const cause: unknown = failure ?? error;
    if (cause instanceof RunFailure || isMachineFault(cause)) throw cause;
    throw new RunFailure(
      'PROGRAM_INTEGRITY',
      `The program's archive can't be unpacked: ${messageOf(cause)}`,
      { cause },
    );
  }
}

class Unpacking {
  readonly #root: string;
  readonly #limits: ArchiveLimits;
  readonly #links: { readonly name: string; readonly path: string; readonly target: string }[] = [];
  #entries = 0;
  #fileBytes = 0;
  #streamBytes = 0;

  constructor(root: string, limits: ArchiveLimits) {
    this.#root = root;
    this.#limits = limits;
  }

  /** All bytes that come out of the decompression, also those of headers and of what follows the end mark. */
  count(bytes: number): void {
    this.#streamBytes += bytes;
    if (this.#streamBytes > this.#limits.bytes + this.#limits.entries * OVERHEAD_PER_ENTRY)
      throw this.#tooLarge();
  }

  async take(entry: ReadEntry): Promise<void> {
    this.#entries += 1;
    if (this.#entries > this.#limits.entries) {
      throw new RunFailure(
        'PROGRAM_INTEGRITY',
        `The program's archive has more than ${this.#limits.entries} members.`,
      );
    }
    const path = this.#pathOf(entry.path);
    if (FILES.has(entry.type)) {
      this.#fileBytes += entry.size;
      if (this.#fileBytes > this.#limits.bytes) throw this.#tooLarge();
      await writeFile(path, entry);
      return;
    }
    if (entry.type === 'SymbolicLink') this.#takeLink(entry, path);
    else if (entry.type === 'Directory') await mkdir(path, { recursive: true });
    else throw refused(entry.path, `is a ${entry.type === 'Link' ? 'hard link' : entry.type}`);
    entry.resume();
  }

  /** Last of all. A link may point at a file, a directory or another link of the archive, and at nothing else. */
  async link(): Promise<void> {
    for (const { name, path, target } of this.#links) {
      const parent = dirname(path);
      await mkdir(parent, { recursive: true });
      if ((await realpath(parent)) !== parent) throw refused(name, 'lies behind a link');
      await symlink(target, path).catch((cause: unknown) => {
        throw refused(name, `can't be made: ${messageOf(cause)}`);
      });
    }
    for (const { name, path } of this.#links) {
      const real = await realpath(path).catch(() => undefined);
      if (real === undefined) throw refused(name, 'is a link to nothing');
      if (!isInside(real, this.#root)) throw refused(name, 'is a link that leaves the directory');
    }
  }

  #takeLink(entry: ReadEntry, path: string): void {
    const target = entry.linkpath ?? '';
    if (target === '' || target.includes('\0')) throw refused(entry.path, 'is a link to nothing');
    if (isAbsolute(target) || !isInside(resolve(dirname(path), target), this.#root)) {
      throw refused(entry.path, 'is a link that leaves the directory');
    }
    this.#links.push({ name: entry.path, path, target });
  }

  #pathOf(name: string): string {
    if (name === '' || name.includes('\0')) throw refused(name, 'has no usable name');
    if (isAbsolute(name)) throw refused(name, 'has an absolute path');
    if (name.split('/').includes('..')) throw refused(name, 'has `..` in its path');
    return join(this.#root, name);
  }

  #tooLarge(): RunFailure {
    return new RunFailure(
      'PROGRAM_INTEGRITY',
      `The program's archive unpacks to more than ${this.#limits.bytes} bytes.`,
    );
  }
}

async function writeFile(path: string, entry: ReadEntry): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  // 'wx': a name that came before would be overwritten, and an archive with two files of one name is no honest one.
  const handle = await open(
    path,
    constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY,
    0o600 | ((entry.mode ?? 0) & 0o777),
  ).catch((cause: unknown) => {
    throw isMachineFault(cause) ? cause : refused(entry.path, `can't be written: ${messageOf(cause)}`);
  });
  try {
    for await (const chunk of entry) await handle.write(chunk);
  } finally {
    await handle.close();
  }
}

/** Below `root`, or `root` itself. Both absolute. */
export function isInside(path: string, root: string): boolean {
  const way = relative(root, path);
  return way === '' || !(way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way));
}

function refused(name: string, why: string): RunFailure {
  const shown = JSON.stringify(name.slice(0, NAME_CHARS));
  return new RunFailure('PROGRAM_INTEGRITY', `The program's archive is refused: its member ${shown} ${why}.`);
}

function messageOf(cause: unknown): string {
  if (cause instanceof Error && 'code' in cause && typeof cause.code === 'string') return cause.code;
  return cause instanceof Error ? cause.message : String(cause);
}
