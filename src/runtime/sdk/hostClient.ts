// The program's end of the socket to its host (protocol/sdk.md 2, 3, 5): requests and their answers, and the host's
// `cancel`. It guards against a call that waits for ever because the host is gone: when the connection ends, every
// pending call fails, and so does every later one.

import { setMaxListeners } from 'node:events';
import { connect, type Socket } from 'node:net';
import { encodeHostFrame, type FrameId, type HostFrame, readHostFrame } from '../../contract/hostFrames.js';
import { isRecord } from '../../contract/json.js';
import { LineReader } from '../../contract/lines.js';
import { HostError } from './hostError.js';

/** The host is trusted, and a shell's output may be long. */
const FRAME_BYTES = 512 * 1024 * 1024;

interface PendingCall {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: HostError) => void;
}

export class HostClient {
  readonly #socket: Socket;
  readonly #cancel = new AbortController();
  readonly #pending = new Map<FrameId, PendingCall>();
  #nextId = 1;
  #closed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    // `context.signal`: authors hand it to as many waits as they like.
    setMaxListeners(0, this.#cancel.signal);
    const lines = new LineReader({ maxBytes: FRAME_BYTES });
    socket.on('data', (chunk: Buffer) => {
      for (const line of lines.push(chunk)) this.#take(readHostFrame(line));
    });
    socket.on('error', () => this.#close());
    socket.on('close', () => this.#close());
  }

  /** @throws Error when nobody listens at `path` */
  static async open(path: string): Promise<HostClient> {
    return new Promise((resolve, reject) => {
      const socket = connect(path);
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new HostClient(socket));
      });
    });
  }

  /** Aborted with `HostError('CANCELLED')` when the run is to stop. */
  get signal(): AbortSignal {
    return this.#cancel.signal;
  }

  /** @throws HostError */
  async request(method: string, params: unknown): Promise<unknown> {
    if (this.#closed) throw connectionClosed();
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#socket.write(encodeHostFrame({ as: 'request', id, method, params }));
    });
  }

  /** Fire and forget. */
  notify(method: string, params: unknown): void {
    if (!this.#closed) this.#socket.write(encodeHostFrame({ as: 'notification', method, params }));
  }

  /** Resolves when everything written so far has left this process. */
  async flushed(): Promise<void> {
    if (this.#closed) return;
    await new Promise<void>((resolve) => this.#socket.write('', () => resolve()));
  }

  #take(frame: ReturnType<typeof readHostFrame>): void {
    switch (frame.as) {
      case 'success':
        this.#settle(frame.id)?.resolve(frame.result);
        return;
      case 'error':
        if (frame.id !== null) this.#settle(frame.id)?.reject(errorOf(frame.error));
        return;
      case 'notification':
        if (frame.method === 'cancel') this.#cancelled(frame.params);
        return;
      case 'request':
        this.#answerUnknown(frame);
        return;
      case 'invalid':
    }
  }

  #settle(id: FrameId): PendingCall | undefined {
    const call = this.#pending.get(id);
    this.#pending.delete(id);
    return call;
  }

  #cancelled(params: unknown): void {
    const reason = isRecord(params) && typeof params['reason'] === 'string' ? params['reason'] : 'cancelled';
    this.#cancel.abort(new HostError('CANCELLED', reason, { reason }));
  }

  #answerUnknown({ id, method }: HostFrame & { as: 'request' }): void {
    const error = { code: 'METHOD_NOT_FOUND', message: `The program has no method ${method}.` };
    this.#socket.write(encodeHostFrame({ as: 'error', id, error }));
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const call of this.#pending.values()) call.reject(connectionClosed());
    this.#pending.clear();
  }
}

function errorOf({
  code,
  message,
  data,
}: {
  readonly code: string;
  readonly message: string;
  readonly data?: unknown;
}): HostError {
  return new HostError(code, message, data);
}

function connectionClosed(): HostError {
  return new HostError('CONNECTION_CLOSED', 'The connection to the host of this run has ended.');
}
