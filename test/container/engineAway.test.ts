// An engine that goes away and comes back, as when it is restarted with its containers alive: the executor loses its
// connections to it, no run is failed for that, and what ran goes on.

import type Docker from 'dockerode';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { containersBelow, engineEnvironment, testEngine } from '../support/engine.js';
import { HELLO, runProgram, startLocalFleet, type LocalFleet } from '../support/localFleet.js';

/** A socket of the engine that a test can take away. */
class EngineSocket {
  readonly path: string;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  constructor(path: string) {
    this.path = path;
  }

  async open(): Promise<void> {
    const address = engineEnvironment().DOCKER_HOST;
    const url = new URL(address.replace(/^tcp:/, 'http:'));
    this.#server = createServer({ allowHalfOpen: true }, (client) => {
      const engine = address.startsWith('unix://')
        ? connect({ path: address.slice('unix://'.length), allowHalfOpen: true })
        : connect({ host: url.hostname, port: Number(url.port), allowHalfOpen: true });
      for (const [from, to] of [
        [client, engine],
        [engine, client],
      ] as const) {
        this.#sockets.add(from);
        from.on('error', () => to.destroy());
        from.once('close', () => this.#sockets.delete(from));
        from.pipe(to);
      }
    }).listen(this.path);
    await once(this.#server, 'listening');
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

let docker: Docker;
let dir: string;
let engine: EngineSocket;
let fleet: LocalFleet;
beforeAll(async () => {
  docker = await testEngine();
  dir = await mkdtemp(join(tmpdir(), 'bwa-'));
  engine = new EngineSocket(join(dir, 'd.sock'));
  await engine.open();
  const environment = { ...engineEnvironment(), DOCKER_HOST: `unix://${engine.path}` };
  fleet = await startLocalFleet({ executors: 1, slots: 2, sandbox: 'container', environment });
});
afterAll(async () => {
  const codes = await fleet.stop();
  await engine.close();
  await rm(dir, { recursive: true, force: true });
  expect(Object.values(codes).filter((code) => code !== 0)).toEqual([]);
  expect(await containersBelow(docker, fleet.dir)).toEqual([]);
});

it('while it runs, a run goes on and completes once', async () => {
  const ids = await fleet.admin.createRuns({
    source: `import { phase, sleep } from '@boardwalk-labs/workflow';
      export default async (input, { attempt }) => { phase('Here'); await sleep('6s'); return attempt; }`,
  });
  await fleet.admin.someRun(ids, 'Here');
  await engine.close();
  await pause(2_000);
  await engine.open();
  const [view] = await fleet.admin.finished(ids);
  expect(view).toMatchObject({ status: 'completed', output: 1, finalizes: 1 });
  await fleet.idle();
});

it('before it starts, a run waits for it and is not failed, however often it was tried (P38)', async () => {
  await engine.close();
  const ids = await fleet.admin.createRuns({ source: 'export default () => "done";' });
  const executor = fleet.processes.find(({ name }) => name === 'executor-1');
  await executor?.line('engine_lost');
  // Longer than three starts take: the third end of a run's own doing would fail it.
  await pause(12_000);
  await engine.open();
  const [view] = await fleet.admin.finished(ids);
  expect(view).toMatchObject({ status: 'completed', output: 'done', finalizes: 1 });
  await fleet.idle();
});

it('at the start, one that takes calls and never answers is named, with both ways out (P25)', async () => {
  const silent = createServer(() => undefined).listen(join(dir, 'silent.sock'));
  const { code, stderr } = await runProgram(['dev', HELLO], {
    DOCKER_HOST: `unix://${join(dir, 'silent.sock')}`,
  });
  silent.close();
  expect(stderr).toContain('did not answer within 5 s');
  expect(stderr).toContain('--host');
  expect(code).toBe(1);
});
