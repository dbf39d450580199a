// How the gateway says no, and how it writes a JSON answer. One class of error stands for every refusal, so that a
// handler throws where it notices and one place writes the bytes; a refusal never quotes a body, a token or a secret.

import type { ServerResponse } from 'node:http';

/** Thrown by a handler: the sandbox gets `{"error":{"code","message"}}` with this status (run-control.md section 1). */
export class Refusal extends Error {
  override readonly name = 'Refusal';

  constructor(
    readonly status: number,
    /** Stable, SCREAMING_SNAKE_CASE. */
    readonly code: string,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** The attempt behind this door has lost the right to act (design section 5); the runtime must end itself. */
export function fenced(): Refusal {
  return new Refusal(410, 'FENCED', 'This attempt no longer owns its run.', { connection: 'close' });
}

/** The call ended under the handler's hands (client gone, fence fallen, door closed): there is nobody to answer. */
export class CallEnded extends Error {
  override readonly name = 'CallEnded';
}

/** Writes a whole answer. A 204 or 304 goes without body and length, as HTTP demands. */
export function sendBytes(
  res: ServerResponse,
  status: number,
  body: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (res.headersSent || res.destroyed) return;
  if (status === 204 || status === 304) {
    res.writeHead(status).end();
    return;
  }
  res.writeHead(status, { ...headers, 'content-length': String(body.byteLength) }).end(body);
}

export function sendRefusal(res: ServerResponse, refusal: Refusal): void {
  sendBytes(
    res,
    refusal.status,
    Buffer.from(JSON.stringify({ error: { code: refusal.code, message: refusal.message } })),
    { ...refusal.headers, 'content-type': 'application/json' },
  );
}
