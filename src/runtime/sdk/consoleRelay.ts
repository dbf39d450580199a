// The program's console, call by call, on its way to the host (protocol/events.md 5): one notification for each call,
// in order with everything else that the program asks. It guards the socket against a program that prints without end.

import { Console } from 'node:console';
import { Writable } from 'node:stream';
import { CONSOLE_CALLS, CONSOLE_METHOD, CONSOLE_TEXT_CHARS } from '../loaderCalls.js';
import type { HostClient } from './hostClient.js';

/** Replaces the methods of the global console. Raw writes to stdout and stderr are not touched; their pipes are captured. */
export function relayConsole(client: Pick<HostClient, 'notify'>): void {
  let calls = 0;
  const relayTo = (stream: 'stdout' | 'stderr'): Writable =>
    new Writable({
      decodeStrings: false,
      write(chunk: unknown, _encoding, done) {
        calls += 1;
        if (calls <= CONSOLE_CALLS) {
          const text = String(chunk).replace(/\n$/, '');
          const cut = text.length > CONSOLE_TEXT_CHARS;
          client.notify(CONSOLE_METHOD, {
            stream,
            text: cut ? text.slice(0, CONSOLE_TEXT_CHARS) : text,
            ...(cut ? { cut } : {}),
          });
        }
        done();
      },
    });
  // A Console makes one write of each call, formatted and indented as Node does it.
  const relayed = new Console({ stdout: relayTo('stdout'), stderr: relayTo('stderr'), colorMode: false });
  Object.assign(console, relayed);
}
