// From the version's download address to an entry that can be run (protocol/program.md 2). It guards against bytes that
// are not those of the version (checked before anything is unpacked), against an entry outside its directory, and
// against a program that brings an SDK of its own, which would not see its host. Running it is `programRun.ts`.

import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { lstat, mkdir, realpath, rm, symlink } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { RunVersion } from '../contract/runControl.js';
import { isInside, unpackArchive } from './archive.js';
import { CALL_TIMEOUT_MS, type Control } from './control.js';
import { isMachineFault } from './machineFault.js';
import { RunFailure } from './runFailure.js';

const ARCHIVE_BYTES = 1024 ** 3;
const SDK_PATH = 'node_modules/@boardwalk-labs/workflow';
/** How the gateway is called where an address is absolute; any other origin is not ours to ask. */
const GATEWAY_ORIGIN = 'http://gateway';

export interface ProgramOptions {
  readonly control: Pick<Control, 'stream'>;
  readonly signal: AbortSignal;
  readonly runId: string;
  readonly programRoot: string;
  readonly workspaceDir: string;
  readonly sdkDir: string;
  readonly log: (message: string) => void;
}

export interface PreparedProgram {
  /** Absolute and real. */
  readonly entryPath: string;
  /** Removes all of it; a failure is only logged. */
  remove(): Promise<void>;
}

/** @throws RunFailure `PROGRAM_FETCH_FAILED`, `PROGRAM_INTEGRITY`, `VALIDATION_FAILED`, `UNSUPPORTED_RUNTIME` */
export async function prepareProgram(
  program: RunVersion['program'],
  options: ProgramOptions,
): Promise<PreparedProgram> {
  const { signal, runId, log } = options;
  const dir = await makeDirectory(options);
  const remove = async (): Promise<void> => {
    await rm(dir, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) =>
      log(`the program's directory of run ${runId} can't be removed: ${String(error)}`),
    );
  };
  try {
    const archive = join(dir, '__program.tgz');
    await download(program, archive, options);
    signal.throwIfAborted();
    const root = join(dir, 'program');
    await mkdir(root);
    await unpackArchive(archive, root);
    await rm(archive);
    await linkSdk(root, options.sdkDir);
    return { entryPath: await resolveEntry(program.entry, root), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function makeDirectory({ programRoot, workspaceDir, runId }: ProgramOptions): Promise<string> {
  await mkdir(programRoot, { recursive: true });
  const root = await realpath(programRoot);
  if (isInside(root, await realpath(workspaceDir).catch(() => resolve(workspaceDir)))) {
    throw new RunFailure('VALIDATION_FAILED', 'The directory for programs must not be inside the workspace.');
  }
  const dir = join(root, '.bw-runs', `${encodeURIComponent(runId).slice(0, 100)}-${randomUUID()}`);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  return dir;
}

/** Streams the archive to a file, and vouches for its digest. */
async function download(
  program: RunVersion['program'],
  archive: string,
  options: ProgramOptions,
): Promise<void> {
  const { control, signal } = options;
  const path = gatewayPath(program.downloadUrl);
  const deadline = new AbortController();
  const end = (): void => deadline.abort();
  const timer = setTimeout(end, CALL_TIMEOUT_MS.download);
  signal.addEventListener('abort', end, { once: true });
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    const answer = await control.stream({
      name: 'program download',
      method: 'GET',
      path,
      accept: '*/*',
      signal: deadline.signal,
    });
    if (answer.status !== 200) throw fetchFailed(`the download was answered with status ${answer.status}`);
    await pipeline(
      answer.body,
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          bytes += chunk.byteLength;
          if (bytes > ARCHIVE_BYTES) throw fetchFailed(`the archive is larger than ${ARCHIVE_BYTES} bytes`);
          hash.update(chunk);
          yield chunk;
        }
      },
      createWriteStream(archive, { flags: 'wx', mode: 0o600 }),
    );
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RunFailure || isMachineFault(error)) throw error;
    const why = deadline.signal.aborted
      ? `it took longer than ${CALL_TIMEOUT_MS.download} ms`
      : String(error);
    throw fetchFailed(why, error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }
  const digest = hash.digest('hex');
  if (digest !== program.digest.toLowerCase()) {
    throw new RunFailure(
      'PROGRAM_INTEGRITY',
      `The program's archive (${bytes} bytes) has the SHA-256 ${digest}, but the version says ${program.digest}.`,
      { hint: 'Deploy the workflow again.' },
    );
  }
}

/** An absolute path, one below the run's own, or an address of the gateway. */
function gatewayPath(downloadUrl: string): string {
  if (!URL.canParse(downloadUrl)) return downloadUrl;
  const url = new URL(downloadUrl);
  if (url.origin === GATEWAY_ORIGIN) return url.pathname + url.search;
  throw fetchFailed('its address is not one of the gateway');
}

async function linkSdk(root: string, sdkDir: string): Promise<void> {
  const path = join(root, SDK_PATH);
  if (await lstat(path).catch(() => undefined)) {
    throw new RunFailure('VALIDATION_FAILED', `The program carries its own SDK in ${SDK_PATH}.`, {
      hint: 'Leave @boardwalk-labs/workflow out of the bundle and out of `files`; the runner provides it.',
    });
  }
  await mkdir(dirname(path), { recursive: true });
  await symlink(resolve(sdkDir), path, 'dir');
}

async function resolveEntry(entry: string, root: string): Promise<string> {
  if (entry === '' || entry.includes('\0') || isAbsolute(entry) || entry.split('/').includes('..')) {
    throw new RunFailure(
      'VALIDATION_FAILED',
      `The version's entry ${JSON.stringify(entry)} is not a path inside the program.`,
    );
  }
  if (entry.toLowerCase().endsWith('.py')) {
    throw new RunFailure(
      'UNSUPPORTED_RUNTIME',
      'Python programs are not available in boardwalk-fleet 0.1 yet.',
      {
        hint: `The version's entry is ${JSON.stringify(entry)}; this runner runs JavaScript modules.`,
      },
    );
  }
  const real = await realpath(join(root, entry)).catch(() => undefined);
  if (real === undefined) {
    throw new RunFailure(
      'VALIDATION_FAILED',
      `The version's entry ${JSON.stringify(entry)} is not in the program's archive.`,
    );
  }
  if (!isInside(real, root)) {
    throw new RunFailure(
      'VALIDATION_FAILED',
      `The version's entry ${JSON.stringify(entry)} leaves the program's directory.`,
    );
  }
  return real;
}

function fetchFailed(why: string, cause?: unknown): RunFailure {
  return new RunFailure('PROGRAM_FETCH_FAILED', `The program can't be downloaded: ${why}.`, { cause });
}
