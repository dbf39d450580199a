// The directory of one executor process below the work directory: its sockets, its runs, and the socket by which its
// neighbours on this host see that it lives. It guards against two executors that share a work directory and clean up
// each other's live work (R2, P35): only a home whose process is proven gone is ever removed by somebody else.
//
// A socket tells what a process id can't: the kernel refuses connections as soon as the process is gone, a frozen
// process accepts and doesn't answer, and it works from another container that shares the directory.

import { once } from 'node:events';
import { mkdir, readdir, realpath, stat } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import type { Logger } from 'pino';
import { removeTree } from './workspace.js';

const HOMES = 'x';
const PRIVATE_MODE = 0o700;
/** For a neighbour that lives; its event loop may be busy. */
const ANSWER_MS = 2_000;
/** A home that is just being made has no socket yet. */
const YOUNG_MS = 60_000;

/**
 * - `alive`: it has answered
 * - `silent`: somebody holds the socket and doesn't answer, as a frozen process
 * - `gone`: the process is no more
 * - `unknown`: nothing of it can be seen from here
 */
export type Presence = 'alive' | 'silent' | 'gone' | 'unknown';

export class ExecutorHome {
  /** Absolute and without links, so that an engine finds the same place. */
  readonly path: string;
  /** Holds the presence socket `s` and nothing else. */
  readonly presenceDir: string;
  readonly #server: Server;

  private constructor(path: string, server: Server) {
    this.path = path;
    this.presenceDir = presenceDirOf(path);
    this.#server = server;
  }

  /**
   * Makes `<work>/x/<name>`.
   *
   * @param name short: socket paths below it have little room
   */
  static async open(workDir: string, name: string): Promise<ExecutorHome> {
    const homes = join(workDir, HOMES);
    await mkdir(homes, { recursive: true, mode: PRIVATE_MODE });
    const path = join(await realpath(homes), name);
    await mkdir(path, { mode: PRIVATE_MODE });
    const presenceDir = presenceDirOf(path);
    // Nothing but the socket is in it, and whoever may look for it here may see that we live.
    await mkdir(presenceDir, { mode: 0o755 });
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.end('alive\n');
    });
    server.on('error', () => undefined);
    server.listen({ path: join(presenceDir, 's'), readableAll: true, writableAll: true });
    await once(server, 'listening');
    server.unref();
    return new ExecutorHome(path, server);
  }

  /** Removes all of it. Never rejects. */
  async close(log: Logger): Promise<void> {
    this.#server.close();
    await removed(this.path, log);
  }
}

/** Whether the executor of a home lives. */
export async function presenceOf(home: string): Promise<Presence> {
  const path = join(presenceDirOf(home), 's');
  const socket = connect(path);
  const answer = await new Promise<Presence>((resolve) => {
    const timer = setTimeout(() => resolve('silent'), ANSWER_MS);
    const tell = (presence: Presence): void => {
      clearTimeout(timer);
      resolve(presence);
    };
    socket.once('data', () => tell('alive'));
    socket.once('close', () => tell('silent'));
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') tell('gone');
      else tell(error.code === 'EAGAIN' ? 'silent' : 'unknown');
    });
  });
  socket.destroy();
  if (answer !== 'unknown') return answer;
  return (await wasRemoved(home)) ? 'gone' : 'unknown';
}

/** Removes the homes of executors that are gone. Never rejects. @returns their paths */
export async function reapHomes(workDir: string, log: Logger): Promise<readonly string[]> {
  const homes = join(workDir, HOMES);
  const names = await readdir(homes).catch(() => []);
  const reaped: string[] = [];
  for (const name of names) {
    const path = join(homes, name);
    const presence = await presenceOf(path);
    if (presence !== 'gone' && !(presence === 'unknown' && (await hasNoSocket(path)))) continue;
    if (await removed(path, log)) reaped.push(path);
  }
  return reaped;
}

/** Where homes lie can be seen, and this one isn't there: its executor has ended in order, or it was reaped. */
async function wasRemoved(home: string): Promise<boolean> {
  if ((await stat(dirname(home)).catch(() => null)) === null) return false;
  return (await stat(home).catch(() => null)) === null;
}

async function hasNoSocket(home: string): Promise<boolean> {
  if ((await stat(join(presenceDirOf(home), 's')).catch(() => null)) !== null) return false;
  const made = await stat(home).catch(() => null);
  return made !== null && Date.now() - made.mtimeMs > YOUNG_MS;
}

async function removed(path: string, log: Logger): Promise<boolean> {
  const removal = await removeTree(path);
  if (removal.outcome === 'removed') return true;
  log.error({ path, err: removal.error }, 'the directory of an executor is left behind');
  return false;
}

function presenceDirOf(home: string): string {
  return join(home, 'alive');
}
