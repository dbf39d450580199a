// The socket on which the program reaches its host (protocol/sdk.md 2, 3, 5). It guards against anybody else on it: the
// directory is private, and the first connection, the loader's, is the only one, after which the socket's name is gone
// (R15). What a program writes there may be anything: bad frames are answered, endless ones end the connection.

import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { encodeHostFrame, type HostFrame, readHostFrame } from '../contract/hostFrames.js';
import { LineReader } from '../contract/lines.js';
import { toWireError } from './runFailure.js';

/** A frame of the program; a returned value may have 2 MiB, and escaping at most multiplies that by six. */
const FRAME_BYTES = 16 * 1024 * 1024;

export interface HostServerOptions {
  /** Private, and short enough for a socket's path; made when missing. Whoever gave it removes it. */
  readonly socketDir: string;
  /** Answers a request with its result, or throws. */
  readonly onRequest: (method: string, params: unknown) => Promise<unknown>;
  /** The next frame is read when it has resolved. */
  readonly onNotification: (method: string, params: unknown) => Promise<void> | void;
  readonly log: (message: string) => void;
}

export class HostServer {
  readonly #options: HostServerOptions;
  #server: Server | undefined;
  #socket: Socket | undefined;
  #stopped = false;
  #reading: Promise<void> = Promise.resolve();
  /** Told to a connection that comes later. */
  #cancel: HostFrame | undefined;

  constructor(options: HostServerOptions) {
    this.#options = options;
  }

  /** @returns the socket's path */
  async start(): Promise<string> {
    const { socketDir } = this.#options;
    await mkdir(socketDir, { recursive: true, mode: 0o700 });
    const path = join(socketDir, `${randomBytes(6).toString('hex')}.h`);
    const server = createServer((socket) => this.#accept(socket));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(path, () => {
        server.off('error', reject);
        resolve();
      });
    });
    server.on('error', (error) => this.#options.log(`host socket: ${error.message}`));
    return path;
  }

  /** Resolves when everything that the program has written is handled, and its end is closed. */
  get ended(): Promise<void> {
    return this.#reading;
  }

  /** Tells the program that the run is to stop (protocol/sdk.md 5.2). */
  cancel(reason: string): void {
    this.#cancel = { as: 'notification', method: 'cancel', params: { reason } };
    this.#send(this.#cancel);
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    // Last answers get their chance to leave.
    await nextTurn();
    await nextTurn();
    this.#socket?.destroy();
    this.#server?.close();
  }

  #accept(socket: Socket): void {
    if (this.#socket !== undefined || this.#stopped) {
      socket.destroy();
      return;
    }
    this.#socket = socket;
    // Closing the listener removes the socket's name as well; this connection stays.
    this.#server?.close();
    if (this.#cancel !== undefined) this.#send(this.#cancel);
    this.#reading = this.#read(socket);
  }

  async #read(socket: Socket): Promise<void> {
    const lines = new LineReader({ maxBytes: FRAME_BYTES });
    try {
      for await (const chunk of socket as AsyncIterable<Buffer>) {
        for (const line of lines.push(chunk)) await this.#take(line);
      }
    } catch (error) {
      if (!this.#stopped)
        this.#options.log(`host socket: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      socket.destroy();
    }
  }

  async #take(line: string): Promise<void> {
    const frame = readHostFrame(line);
    switch (frame.as) {
      case 'request':
        // Not waited for: requests are handled side by side.
        void this.#answer(frame);
        return;
      case 'notification':
        await this.#options.onNotification(frame.method, frame.params);
        return;
      case 'invalid':
        if (frame.reason === 'not_json')
          this.#options.log('host socket: a line that is not JSON was dropped');
        else this.#send(protocolError('The line is not a frame of this protocol.'));
        return;
      case 'success':
      case 'error':
      // The host asks nothing of the program yet, so it waits for no answer.
    }
  }

  async #answer({ id, method, params }: HostFrame & { as: 'request' }): Promise<void> {
    try {
      this.#send({ as: 'success', id, result: await this.#options.onRequest(method, params) });
    } catch (error) {
      this.#send({ as: 'error', id, error: toWireError(error) });
    }
  }

  #send(frame: HostFrame): void {
    if (this.#socket?.writable === true) this.#socket.write(encodeHostFrame(frame));
  }
}

function protocolError(message: string): HostFrame {
  return { as: 'error', id: null, error: { code: 'PROTOCOL_ERROR', message } };
}
