// Finding a Redis server program, and asking a socket whether one serves it. Needs no client: it is used before
// anything is connected, and while a server starts or ends.

import { access, constants } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { delimiter, join } from 'node:path';

const ANSWER_TIMEOUT_MS = 1_000;

/** Both speak the same protocol and take the same arguments. */
const SERVER_NAMES = ['redis-server', 'valkey-server'] as const;

/** Finds a server program on a PATH; null when there is none. */
export async function findRedisServer(path: string): Promise<string | null> {
  for (const name of SERVER_NAMES) {
    for (const directory of path.split(delimiter).filter((part) => part !== '')) {
      const file = join(directory, name);
      if (await isExecutable(file)) return file;
    }
  }
  return null;
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Whether a server serves this socket: `loading` while it still reads its data. */
export async function pingRedis(socketPath: string): Promise<'ready' | 'loading' | 'absent'> {
  if (socketPath === '') return 'absent';
  const answer = await firstAnswer(socketPath);
  if (answer === null) return 'absent';
  return answer.startsWith('+PONG') ? 'ready' : 'loading';
}

async function firstAnswer(socketPath: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = createConnection({ path: socketPath });
    const end = (answer: string | null): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => end(null));
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (data) => end(data.toString('utf8')));
    socket.once('error', () => end(null));
    socket.once('close', () => end(null));
  });
}
