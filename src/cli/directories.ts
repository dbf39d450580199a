// Directories that a command needs before it begins. Guards against a wrong one that shows up as a fault of ours, and
// against one that never answers: Node's own recursive mkdir goes round for ever below /proc, and no signal ends it.

import { access, constants, mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { OperatorError } from '../contract/operatorError.js';

const PRIVATE_MODE = 0o700;
/** The sockets of runs lie below what is made in it, and a socket's path may have 103 bytes. */
const LONGEST_TEMPORARY = 52;

/**
 * Makes a directory with those above it, and sees that it can be written to.
 *
 * @param what is what it is called in the error: `work directory`
 * @throws OperatorError `DIRECTORY_UNUSABLE`
 */
export async function usableDirectory(dir: string, what: string, hint: string): Promise<void> {
  try {
    await makeDirectory(resolve(dir));
    await access(dir, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw unusable(`The ${what} ${dir}`, cause, hint);
  }
}

/** A new directory for one command, removed by whoever made it. @throws OperatorError `DIRECTORY_UNUSABLE` */
export async function temporaryDirectory(prefix: string): Promise<string> {
  if (Buffer.byteLength(tmpdir()) > LONGEST_TEMPORARY)
    throw new OperatorError(
      'DIRECTORY_UNUSABLE',
      `The directory for temporary files ${tmpdir()} has too long a name for sockets.`,
      { hint: `Set TMPDIR to a directory of at most ${LONGEST_TEMPORARY} bytes, for example /tmp.` },
    );
  try {
    return await mkdtemp(join(tmpdir(), prefix));
  } catch (cause) {
    const hint = 'Set TMPDIR to a directory that exists and that you may write to.';
    throw unusable(`The directory for temporary files ${tmpdir()}`, cause, hint);
  }
}

async function makeDirectory(dir: string): Promise<void> {
  if (await made(dir)) return;
  await makeDirectory(dirname(dir));
  // Where the one above is there and this one still has no place, nothing helps.
  if (!(await made(dir)))
    throw Object.assign(new Error(`no directory can be made at ${dir}`), { code: 'ENOENT' });
}

/** false: the directory above is missing. */
async function made(dir: string): Promise<boolean> {
  try {
    await mkdir(dir, { mode: PRIVATE_MODE });
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' && dirname(dir) !== dir) return false;
    // What is there and is no directory fails at the next step; a system may answer EROFS or EISDIR for what exists.
    if (code !== 'EEXIST' && !(await exists(dir))) throw error;
  }
  return true;
}

async function exists(path: string): Promise<boolean> {
  return access(join(path, '.')).then(
    () => true,
    () => false,
  );
}

function unusable(subject: string, cause: unknown, hint: string): OperatorError {
  const why = codeOf(cause) ?? 'unknown reason';
  return new OperatorError('DIRECTORY_UNUSABLE', `${subject} can't be used (${why}).`, { hint, cause });
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}
