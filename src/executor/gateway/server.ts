// Where sandboxes connect: one Unix socket and one random bearer a run, all in one private directory. It guards
// against a sandbox that reaches another run's door, and against connections that only take up room (silent ones,
// endless headers, garbage). What a request may do is the door's business.
//
// Each socket has an HTTP server of its own, because Node enforces its header and request timeouts only on servers
// that listen themselves, not on connections that are handed to one.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { chmod, chown, mkdir, rm, rmdir, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { OperatorError } from '../../contract/operatorError.js';
import type { Owner } from '../sandbox/sandbox.js';
import { Refusal, sendRefusal } from './answers.js';

/** Linux allows 107 bytes, macOS and the BSDs 103. */
const SOCKET_PATH_BYTES = 103;
/** A door is the directory `<n>`: in it `s`, its socket, and `h` with the program's, of a name that can't be guessed. */
const LONGEST_SOCKET = '999999/h/0123456789ab.h';
const LAST_NUMBER = 999_999;

/** Milliseconds. */
export interface GatewayTimeouts {
  /** A client of ours sends its headers at once; whoever needs longer is stuck or means harm. */
  readonly headersMs: number;
  /** For a whole request with its body over a local socket. */
  readonly requestMs: number;
  /** How often connections are looked at for the two above. */
  readonly checkMs: number;
}

const TIMEOUTS: GatewayTimeouts = { headersMs: 10_000, requestMs: 120_000, checkMs: 2_000 };
const HEADER_BYTES = 16 * 1024;
const HEADER_COUNT = 100;
/** A run has a few dozen calls in flight at most; parallel agents of a wide program have one each. */
const CONNECTIONS_PER_RUN = 512;
/** Sockets left behind by a process that was killed keep their number; this many are stepped over. */
const NUMBER_TRIES = 10_000;

/** What the gateway needs to know of a door. */
export interface DoorHandler {
  readonly runId: string;
  handle(req: IncomingMessage, res: ServerResponse): Promise<void>;
  /** Ends everything in progress; safe to call twice. */
  close(): void;
  /** After `close`: resolves when nothing that was begun can have an effect any more. */
  settled(): Promise<void>;
}

export interface OpenDoor {
  /** Holds the socket and what belongs to it; goes with the door, whatever is in it. */
  readonly dir: string;
  readonly socketPath: string;
  /** 32 random bytes, base64url; every request must carry it as `Authorization: Bearer`. */
  readonly bearer: string;
  /** For the program's own socket: with a short path, made by the runtime. Below `dir`. */
  readonly hostSocketDir: string;
  /**
   * Closes the door, destroys its connections and removes its directory. When it resolves, a finalize that was on its way
   * into the lane is there or never will be. Safe to call twice.
   */
  close(): Promise<void>;
}

export interface GatewayOptions {
  /** Made with mode 0700 when missing. Short: the paths of sockets in it must stay under 104 bytes. */
  readonly socketDir: string;
  readonly log: Logger;
  /** Default 10 s for headers, 120 s for a whole request. */
  readonly timeouts?: GatewayTimeouts;
}

export class Gateway {
  readonly #options: GatewayOptions;
  readonly #open = new Set<OpenDoor>();
  #nextNumber = 1;
  #state: 'new' | 'started' | 'stopped' = 'new';

  constructor(options: GatewayOptions) {
    this.#options = options;
  }

  /** @throws OperatorError `GATEWAY_SOCKET_DIR` when the directory can't be used. */
  async start(): Promise<void> {
    if (this.#state !== 'new') return;
    const { socketDir } = this.#options;
    if (Buffer.byteLength(join(socketDir, LONGEST_SOCKET)) > SOCKET_PATH_BYTES) {
      throw new OperatorError(
        'GATEWAY_SOCKET_DIR',
        `The socket directory ${socketDir} has too long a path.`,
        {
          hint: `A Unix socket's path may have ${SOCKET_PATH_BYTES} bytes. Name a directory with a shorter path with --work-dir.`,
        },
      );
    }
    try {
      await mkdir(socketDir, { recursive: true, mode: 0o700 });
      // mkdir leaves the mode of a directory that was there as it was.
      await chmod(socketDir, 0o700);
      if (!(await stat(socketDir)).isDirectory()) throw new Error('not a directory');
    } catch (cause) {
      throw new OperatorError('GATEWAY_SOCKET_DIR', `The socket directory ${socketDir} can't be used.`, {
        hint: 'It must be a directory that this user owns; it is made when it is missing.',
        cause,
      });
    }
    this.#state = 'started';
  }

  /** Closes every door that is still open. */
  async stop(): Promise<void> {
    this.#state = 'stopped';
    await Promise.all([...this.#open].map((door) => door.close()));
    // Ours alone when it is empty; whatever else lies in it is not ours to remove.
    await rmdir(this.#options.socketDir).catch(() => undefined);
  }

  /**
   * Opens a socket of its own for `door`. From the return on, a sandbox may connect.
   *
   * @param owner who may, where that is not this process's own user
   */
  async openDoor(door: DoorHandler, owner: Owner | null = null): Promise<OpenDoor> {
    if (this.#state !== 'started') throw new Error('The gateway is not started.');
    const bearer = randomBytes(32).toString('base64url');
    const server = this.#serverFor(door, bearer);
    const dir = await this.#makeDirectory();
    const socketPath = join(dir, 's');
    let closing: Promise<void> | undefined;
    const open: OpenDoor = {
      dir,
      socketPath,
      bearer,
      hostSocketDir: join(dir, 'h'),
      close: () => {
        closing ??= closeServer(server, door, dir).finally(() => this.#open.delete(open));
        return closing;
      },
    };
    this.#open.add(open);
    try {
      server.listen(socketPath);
      await once(server, 'listening');
      await chmod(socketPath, 0o600);
      if (owner !== null) for (const path of [socketPath, dir]) await chown(path, owner.uid, owner.gid);
    } catch (error) {
      await open.close();
      throw error;
    }
    return open;
  }

  #serverFor(door: DoorHandler, bearer: string): Server {
    const { log, timeouts = TIMEOUTS } = this.#options;
    const isOurs = bearerCheck(bearer);
    const server = createServer(
      {
        headersTimeout: timeouts.headersMs,
        requestTimeout: timeouts.requestMs,
        connectionsCheckingInterval: timeouts.checkMs,
        maxHeaderSize: HEADER_BYTES,
        // The runtime keeps its connections for the whole run and doesn't retry: a server that closes idle ones
        // would race with its next request.
        keepAliveTimeout: 0,
      },
      (req, res) => {
        if (!isOurs(req.headers.authorization)) {
          // Its body is not read; closing keeps an endless one from being swallowed.
          sendRefusal(
            res,
            new Refusal(401, 'UNAUTHORIZED', 'The bearer is not the one of this door.', {
              connection: 'close',
            }),
          );
          return;
        }
        door.handle(req, res).catch((err: unknown) => {
          log.error(
            { runId: door.runId, errorName: err instanceof Error ? err.name : typeof err },
            'gateway: a door threw',
          );
          res.destroy();
        });
      },
    );
    server.maxHeadersCount = HEADER_COUNT;
    server.maxConnections = CONNECTIONS_PER_RUN;
    // Without a listener an accept that fails (too many open files) would end the process.
    server.on('error', (err) => {
      log.error({ runId: door.runId, code: errnoOf(err) }, 'gateway: a socket reported an error');
    });
    return server;
  }

  /** What another process has left keeps its number, and is left alone (R2). */
  async #makeDirectory(): Promise<string> {
    for (let tries = 0; tries < NUMBER_TRIES; tries += 1) {
      const dir = join(this.#options.socketDir, String(this.#nextNumber));
      this.#nextNumber = (this.#nextNumber % LAST_NUMBER) + 1;
      try {
        // Somebody may have removed the directory above while we were idle.
        await mkdir(this.#options.socketDir, { recursive: true, mode: 0o700 });
        await mkdir(dir, { mode: 0o700 });
        return dir;
      } catch (error) {
        if (errnoOf(error) !== 'EEXIST') throw error;
      }
    }
    throw new OperatorError(
      'GATEWAY_SOCKET_DIR',
      `The socket directory ${this.#options.socketDir} is full of old sockets.`,
      { hint: 'Remove it while nothing runs in it.' },
    );
  }
}

async function closeServer(server: Server, door: DoorHandler, dir: string): Promise<void> {
  door.close();
  await new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeAllConnections();
  });
  await door.settled();
  await rm(dir, { recursive: true, force: true });
}

/** Compares digests, so that neither the content nor the length of a guess shows in the time it takes. */
function bearerCheck(bearer: string): (header: string | undefined) => boolean {
  const expected = digest(`Bearer ${bearer}`);
  return (header) => header !== undefined && timingSafeEqual(digest(header), expected);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function errnoOf(err: unknown): string | undefined {
  return err instanceof Error && 'code' in err && typeof err.code === 'string' ? err.code : undefined;
}
