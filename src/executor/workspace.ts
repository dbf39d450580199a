// The directories of one attempt below the work directory. Each attempt has its own, named after run and attempt, so
// that executors which share a work directory never touch each other's live work (R2), an id from the wire never
// leaves the tree (R13) and a workspace never outlives its run (P45). Persisted scopes and leftovers of crashed
// executors are not handled here (`home.ts`).

import { execFile } from 'node:child_process';
import { chown, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pathSegment } from '../contract/ids.js';
import { OperatorError } from '../contract/operatorError.js';
import type { Owner } from './sandbox/sandbox.js';

/** Only the executor's user may look in: the workspace is the author's, and other users of the host are not. */
const PRIVATE_MODE = 0o700;

/** What became of a removal; `left` leaves it to the caller to report. */
export type Removal =
  | { readonly outcome: 'removed' }
  | { readonly outcome: 'left'; readonly path: string; readonly error: unknown };

/** Directories of one attempt; all exist and are empty at first. */
export interface RunDirectories {
  /** Holds the three below and nothing else. */
  readonly root: string;
  /** Working directory and HOME of the run process. */
  readonly workspace: string;
  /** TMPDIR. */
  readonly tmp: string;
  /** Where program archives are unpacked; never inside the workspace (program.md 2). */
  readonly program: string;
  /** Deletes all of it, read-only directories included. Never rejects; may be called again. */
  remove(): Promise<Removal>;
}

export class WorkDirectory {
  readonly #path: string;

  /** @param path absolute, or relative to the working directory at the time of a call. */
  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Makes sure that runs can be put there; called at start, so that an unusable directory is no run's surprise.
   *
   * @throws OperatorError `WORK_DIR_UNUSABLE`
   */
  async prepare(): Promise<void> {
    try {
      const probe = await mkdtemp(join(await this.#runsDir(), '.probe-'));
      await rm(probe, { recursive: true });
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new OperatorError(
        'WORK_DIR_UNUSABLE',
        `The work directory ${this.#path} can't be used: ${reason}`,
        {
          hint: 'Name a directory that this user may write to with --work-dir.',
          cause,
        },
      );
    }
  }

  /**
   * Creates `<work>/runs/<run id>-<attempt id>-<random>/{workspace,tmp,program}`, each with mode 0700.
   *
   * @param owner whom they belong to, where that is not this process's own user
   * @throws OperatorError `UNSAFE_ID` when an id is not a single safe path segment.
   * @throws the file system's error when it can't be created; then nothing is left behind.
   */
  async create(runId: string, attemptId: string, owner: Owner | null = null): Promise<RunDirectories> {
    const name = `${pathSegment(runId)}-${pathSegment(attemptId)}-`;
    // The random end keeps two fleets apart, and an attempt from what one of the same number left after a crash.
    const root = await mkdtemp(join(await this.#runsDir(), name));
    const directories: RunDirectories = {
      root,
      workspace: join(root, 'workspace'),
      tmp: join(root, 'tmp'),
      program: join(root, 'program'),
      remove: () => removeTree(root),
    };
    try {
      for (const path of [directories.workspace, directories.tmp, directories.program]) {
        await mkdir(path, { mode: PRIVATE_MODE });
        if (owner !== null) await chown(path, owner.uid, owner.gid);
      }
    } catch (error) {
      await directories.remove();
      throw error;
    }
    return directories;
  }

  /** Resolved, because programs compare their working directory with what they are told. */
  async #runsDir(): Promise<string> {
    const runs = join(this.#path, 'runs');
    await mkdir(runs, { recursive: true, mode: PRIVATE_MODE });
    return realpath(runs);
  }
}

/** Deletes a directory and all below, whatever it takes. Never rejects. */
export async function removeTree(root: string): Promise<Removal> {
  try {
    // The retries are for a file that appears while its directory is emptied, by a process that is just being killed.
    await rm(root, { recursive: true, force: true, maxRetries: 3, retryDelay: 50 });
  } catch {
    try {
      await removeByTools(root);
    } catch (error) {
      return { outcome: 'left', path: root, error };
    }
  }
  return { outcome: 'removed' };
}

/** Long enough for a million files; a hung network file system must not hold the slot for ever (P25). */
const TOOL_TIMEOUT_MS = 120_000;

/**
 * What Node can't remove: below a directory without write permission, as caches of package managers leave it, and
 * below a path that is longer than the system takes, as only a program of ill will leaves it. Both tools walk with
 * relative paths, and neither follows a symbolic link.
 */
async function removeByTools(root: string): Promise<void> {
  const run = promisify(execFile);
  const options = { timeout: TOOL_TIMEOUT_MS };
  // Its failure is only interesting if removing fails too, which then says why.
  await run('chmod', ['-R', 'u+rwx', '--', root], options).catch(() => undefined);
  await run('rm', ['-rf', '--', root], options);
}
