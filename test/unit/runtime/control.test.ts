// The client of the gateway: what it tries again, what it gives up, and what it says then.

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SecretSet } from '../../../src/redaction/secretSet.js';
import { Control } from '../../../src/runtime/control.js';

let dir: string;
let server: Server | undefined;
let control: Control;
let fenced: number;
const secrets = new SecretSet();

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'ct'));
  fenced = 0;
  control = new Control({
    socketPath: join(dir, 's'),
    bearer: 'the-bearer',
    runId: 'a/b',
    secrets,
    onFenced: () => (fenced += 1),
  });
});

afterEach(async () => {
  control.close();
  server?.closeAllConnections();
  server?.close();
  server = undefined;
  await rm(dir, { recursive: true, force: true });
});

async function serve(listener: RequestListener): Promise<void> {
  server = createServer(listener).listen(join(dir, 's'));
  await once(server, 'listening');
}

const CALL = { name: 'cancel', method: 'GET', path: 'cancel' } as const;

test('a call has the encoded run id in its path, the bearer, and a body only when there is one', async () => {
  await serve((req, res) =>
    res.end(JSON.stringify([req.url, req.headers.authorization, req.headers['content-type']])),
  );
  const answer = await control.call(CALL, 5_000);
  expect(JSON.parse(answer.body.toString())).toEqual([
    '/runner/v1/runs/a%2Fb/cancel',
    'Bearer the-bearer',
    null,
  ]);
});

test('a gateway that is not there yet is waited for a moment', async () => {
  const call = control.call(CALL, 5_000);
  await serve((_req, res) => res.end('here'));
  expect((await call).body.toString()).toBe('here');
});

test('an answer is never asked for twice, whatever its status; 410 says that the run is lost', async () => {
  let calls = 0;
  await serve((_req, res) => {
    calls += 1;
    res.writeHead(calls === 1 ? 503 : 410).end();
  });
  expect((await control.call(CALL, 5_000)).status).toBe(503);
  expect((await control.call(CALL, 5_000)).status).toBe(410);
  expect({ calls, fenced }).toEqual({ calls: 2, fenced: 1 });
});

test('a connection that breaks, before or within the answer, is an error of its own kind', async () => {
  await serve((req, res) => {
    if (req.url?.endsWith('cancel') === true) req.socket.destroy();
    else res.writeHead(200, { 'content-length': '100' }).write('half', () => req.socket.destroy());
  });
  await expect(control.call(CALL, 5_000)).rejects.toMatchObject({ code: 'GATEWAY_UNREACHABLE' });
  await expect(control.call({ ...CALL, path: 'version' }, 5_000)).rejects.toMatchObject({
    code: 'GATEWAY_UNREACHABLE',
  });
});

test('a call that is not answered in time says so by its name', async () => {
  await serve(() => undefined);
  await expect(control.call(CALL, 30)).rejects.toMatchObject({
    code: 'GATEWAY_TIMEOUT',
    message: 'cancel was not answered within 30 ms',
  });
});

test('an aborted call ends with the reason of the abort', async () => {
  const stop = new AbortController();
  await serve(() => stop.abort(new Error('enough')));
  await expect(control.call({ ...CALL, signal: stop.signal }, 5_000)).rejects.toThrow('enough');
});

test('an unexpected answer is quoted without its secrets, and not for long', () => {
  secrets.add('top-secret');
  const error = control.unexpected(CALL, {
    status: 500,
    body: Buffer.from(`top-secret ${'x'.repeat(1_000)}`),
  });
  expect(error.message).toMatch(/^cancel was answered with status 500: \[REDACTED\] x+$/);
  expect(error.message.length).toBeLessThan(600);
});
