// An HTTP client over a Unix socket, as a sandbox has one, and a bare socket for those that speak no HTTP at all.

import { once } from 'node:events';
import { request as httpRequest, type Agent, type ClientRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  json(): unknown;
}

export interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly bearer?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  readonly agent?: Agent;
}

/** Sends a request and hands out its answer while the body still comes. */
export async function open(
  socketPath: string,
  asked: Asked,
): Promise<{ req: ClientRequest; res: IncomingMessage }> {
  const req = httpRequest({
    socketPath,
    path: asked.path,
    method: asked.method ?? 'GET',
    headers: {
      ...(asked.bearer === undefined ? {} : { authorization: `Bearer ${asked.bearer}` }),
      ...(asked.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...asked.headers,
    },
    ...(asked.agent === undefined ? {} : { agent: asked.agent }),
  });
  req.end(asked.body);
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  // After the answer has begun, a cut connection is seen on the answer.
  req.on('error', () => undefined);
  return { req, res };
}

export async function ask(socketPath: string, asked: Asked): Promise<Answer> {
  const { res } = await open(socketPath, asked);
  const text = await textOf(res);
  return {
    status: res.statusCode ?? 0,
    headers: res.headers,
    text,
    json: () => JSON.parse(text) as unknown,
  };
}

export async function textOf(res: IncomingMessage): Promise<string> {
  let text = '';
  res.setEncoding('utf8');
  for await (const chunk of res) text += String(chunk);
  return text;
}

/** A socket that collects what it is told. */
export async function bare(socketPath: string): Promise<{ socket: Socket; said: Promise<string> }> {
  const socket = connect(socketPath);
  let text = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => (text += chunk));
  socket.on('error', () => undefined);
  const said = new Promise<string>((resolve) => socket.on('close', () => resolve(text)));
  await once(socket, 'connect');
  return { socket, said };
}
