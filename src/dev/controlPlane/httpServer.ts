// The listening side: reads a request within its bound, asks the route, writes the answer. It guards the process
// against whatever comes in (endless bodies, clients that hang up, a route that throws), and its own end: a stop lets
// go of every connection in bounded time.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { OperatorError } from '../../contract/operatorError.js';
import { Refusal, refused, type Answer, type StreamedAnswer, type WholeAnswer } from './answer.js';
import { Incoming, readBody } from './incoming.js';
import { Outlet } from './outlet.js';
import type { FoundRoute, Router } from './router.js';

/** Longer than clients keep an idle connection: whoever closes first should be the one that sends next. */
const KEEP_ALIVE_MS = 65_000;
/** This machine only: it is no server for others. */
const HOST = '127.0.0.1';
/** For answers in flight when the server stops. */
const STOP_GRACE_MS = 1_000;

export interface HttpServerOptions {
  /** 0: any free one. */
  readonly port: number;
  readonly router: Router;
  /** Every request once, when its status is decided; `aborted` when the client hung up before. */
  readonly onAnswer: (route: string, status: number | 'aborted') => void;
}

export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #server: Server;
  readonly #outlets = new Set<Outlet>();
  /** Connections without a request. The server's own notion leaves out those that never had one, as clients open ahead. */
  readonly #idle = new Set<Socket>();
  #stopping = false;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, noDelay: true }, (req, res) => {
      this.#idle.delete(req.socket);
      res.once('close', () => {
        if (!req.socket.destroyed) this.#idle.add(req.socket);
      });
      void this.#handle(req, res);
    });
    this.#server.on('connection', (socket: Socket) => {
      this.#idle.add(socket);
      socket.once('close', () => this.#idle.delete(socket));
    });
  }

  /** @returns the address. @throws OperatorError `PORT_UNAVAILABLE` */
  async start(): Promise<string> {
    const { port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      // Stays: without a listener an accept that fails later (too many open files) would end the process.
      this.#server.on('error', (cause) => {
        const why = 'code' in cause ? String(cause.code) : cause.message;
        const message =
          why === 'EADDRINUSE'
            ? `The control plane can't listen on ${HOST}:${port}: the port is in use.`
            : `The control plane can't listen on ${HOST}:${port} (${why}).`;
        reject(
          new OperatorError('PORT_UNAVAILABLE', message, {
            hint: 'Choose another port, or 0 for any.',
            cause,
          }),
        );
      });
      this.#server.listen(port, HOST, resolve);
    });
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('The server has no TCP address.');
    return `http://${HOST}:${address.port}`;
  }

  /** Streams are cut, other answers in flight get a second; then every connection is closed. */
  async stop(): Promise<void> {
    this.#stopping = true;
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => {
      const grace = setTimeout(() => this.#server.closeAllConnections(), STOP_GRACE_MS);
      this.#server.close(() => {
        clearTimeout(grace);
        resolve();
      });
      for (const socket of this.#idle) socket.destroy();
      for (const outlet of this.#outlets) outlet.drop();
    });
  }

  async #handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    // Without a listener a broken connection would end the process; 'close' follows and is what counts.
    req.on('error', ignore);
    res.on('error', ignore);
    const route = this.#options.router.find(req.method ?? '', req.url ?? '');
    const answer = await this.#answerOf(route, req, res);
    if (answer === null || res.destroyed) {
      this.#options.onAnswer(route.name, 'aborted');
      if (answer !== null && !('play' in answer)) answer.onLost?.();
      return;
    }
    this.#options.onAnswer(route.name, answer.status);
    if ('play' in answer) await this.#stream(res, answer);
    else this.#send(res, answer);
  }

  /** `null`: the request broke off. */
  async #answerOf(route: FoundRoute, req: IncomingMessage, res: ServerResponse): Promise<Answer | null> {
    const read = await readBody(req, route.bodyBytes);
    if (read.outcome === 'broken') return null;
    if (read.outcome === 'too_large')
      return refused(413, 'TOO_LARGE', `The body is longer than ${route.bodyBytes} bytes.`);
    try {
      return await route.answer(new Incoming(req, res, route.params, read.body));
    } catch (error) {
      if (error instanceof Refusal) return error.answer;
      // What went wrong is a fault of ours; its text may hold what the request held.
      return refused(
        500,
        'INTERNAL_ERROR',
        `The control plane failed (${error instanceof Error ? error.name : 'error'}).`,
      );
    }
  }

  #send(res: ServerResponse, { status, body, contentType = 'application/json', onLost }: WholeAnswer): void {
    if (onLost !== undefined)
      res.once('close', () => {
        if (!res.writableFinished) onLost();
      });
    const connection = this.#stopping ? { connection: 'close' } : {};
    if (body === undefined) {
      res.writeHead(status, connection).end();
      return;
    }
    res
      .writeHead(status, {
        ...connection,
        'content-type': contentType,
        'content-length': typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength,
      })
      .end(body);
  }

  async #stream(res: ServerResponse, { status, contentType, play }: StreamedAnswer): Promise<void> {
    res.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).flushHeaders();
    const outlet = new Outlet(res);
    this.#outlets.add(outlet);
    try {
      await play(outlet);
    } catch {
      // The status is out: a broken connection is the only way left to say that the answer is not whole.
      outlet.drop();
    } finally {
      this.#outlets.delete(outlet);
    }
  }
}

function ignore(): void {
  // The connection's own end says all there is to know.
}
