// An HTTP proxy as companies have them: plain calls are handed to it whole, others through tunnels.

import { once } from 'node:events';
import { createServer, request, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo } from 'node:net';

export interface TestProxy {
  readonly address: string;
  /** `METHOD target`, and the credentials that came with it. */
  readonly seen: { readonly call: string; readonly authorization: string | undefined }[];
  readonly stop: () => void;
}

/** Sends whatever it is asked for to one port of this machine; with `refuse`, nothing. */
export async function startTestProxy(port: number, refuse?: number): Promise<TestProxy> {
  const seen: TestProxy['seen'] = [];
  const note = ({ method, url, headers }: IncomingMessage): void => {
    seen.push({ call: `${method ?? ''} ${url ?? ''}`, authorization: headers['proxy-authorization'] });
  };
  const proxy = createServer((incoming, outgoing) => {
    note(incoming);
    if (refuse !== undefined) return void outgoing.writeHead(refuse).end();
    const { method, headers } = incoming;
    const { pathname, search } = new URL(incoming.url ?? '');
    const onward = request(
      // Not Node's global agent, which the shell of whoever tests may send through a proxy of its own.
      { agent: false, host: '127.0.0.1', port, method, headers, path: pathname + search },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    incoming.pipe(onward);
  });
  proxy.on('connect', (incoming, client) => {
    note(incoming);
    if (refuse !== undefined) return void client.end(`HTTP/1.1 ${refuse} Refused\r\n\r\n`);
    const server = connect(port, '127.0.0.1', () => client.write('HTTP/1.1 200 OK\r\n\r\n'));
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on('error', () => to.destroy());
      from.pipe(to);
    }
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const stop = (): void => {
    proxy.closeAllConnections();
    proxy.close();
  };
  return { address: `127.0.0.1:${(proxy.address() as AddressInfo).port}`, seen, stop };
}
