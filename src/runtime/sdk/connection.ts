// The one connection of this process to its host, made at the first call (protocol/sdk.md 1). State of the module: every
// importer of the SDK in a process must see the same host, which is why a program may not bring a copy of its own.

import { HostClient } from './hostClient.js';

const SOCKET_VARIABLE = 'BOARDWALK_HOST_SOCK';

let opening: Promise<HostClient> | undefined;
let connected: HostClient | undefined;

/** @throws Error when this process has no host, or it can't be reached; the next call tries again */
export async function host(): Promise<HostClient> {
  if (connected !== undefined) return connected;
  opening ??= open().finally(() => {
    opening = undefined;
  });
  connected = await opening;
  return connected;
}

/** The host once there is a connection: what is sent through it at once keeps its place among other calls and prints. */
export function connectedHost(): HostClient | undefined {
  return connected;
}

/** One call; the result as the host gave it. @throws HostError; Error without a host */
export async function callHost(method: string, params: unknown): Promise<unknown> {
  return (connected ?? (await host())).request(method, params);
}

async function open(): Promise<HostClient> {
  const path = process.env[SOCKET_VARIABLE];
  if (path === undefined || path === '') {
    throw new Error(
      'There is no Boardwalk host in this process. Run the workflow with `boardwalk-fleet dev DIR`, or deploy it: ' +
        'its functions work only inside of a run.',
    );
  }
  return HostClient.open(path);
}
