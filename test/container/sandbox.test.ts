// One container at a time, below everything that knows of runs: no end is missed, none is told twice, nothing stays.

import { mkdtemp, mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ContainerSandbox } from '../../src/executor/sandbox/container/containerSandbox.js';
import { createOptions } from '../../src/executor/sandbox/container/createOptions.js';
import type { Sandbox } from '../../src/executor/sandbox/sandbox.js';
import { containersBelow, testEngine, testImage } from '../support/engine.js';
import { silent } from '../support/fleet.js';

let docker: Docker;
let dir = '';
let made = 0;
beforeAll(async () => {
  docker = await testEngine();
  dir = await mkdtemp(join(tmpdir(), 'bwc-'));
  for (const name of ['workspace', 'gateway', 'runtime']) await mkdir(join(dir, name), { mode: 0o755 });
});
afterAll(async () => {
  expect(await containersBelow(docker, dir)).toEqual([]);
  await rm(dir, { recursive: true, force: true });
});

interface Started {
  readonly sandbox: Sandbox;
  readonly lines: string[];
}

/** A container with all limits and this command, and the lines that it says. */
async function started(
  entrypoint: readonly string[],
  changes: { readonly image?: string; readonly memoryBytes?: number } = {},
): Promise<Started> {
  made += 1;
  const sandboxId = `test-${process.pid}-${made}`;
  const places = { workspaceDir: join(dir, 'workspace'), gatewayDir: join(dir, 'gateway') };
  const options = createOptions(
    { sandboxId, runId: 'run_test', env: {}, ...places },
    {
      image: testImage(),
      network: 'none',
      mounts: [],
      memoryBytes: 256 * 1024 ** 2,
      cpus: 1,
      pids: 100,
      logBytes: 1024 ** 2,
      ...changes,
    },
    {
      fleetName: 'test',
      executorId: 'exe_test',
      bootId: 'boot',
      home: join(dir, 'home'),
      user: { uid: 1_000, gid: 1_000 },
      runtimeDir: join(dir, 'runtime'),
    },
  );
  const lines: string[] = [];
  const sandbox = await ContainerSandbox.start({
    docker,
    sandboxId,
    options: { ...options, Entrypoint: [...entrypoint] },
    input: 'from the executor\n',
    onLog: (stream, line) => lines.push(`${stream} ${line}`),
    log: silent,
  });
  return { sandbox, lines };
}

describe('a container', () => {
  it('that ends in 5 ms is not missed in 200 tries: exit code and last line each time', async () => {
    const missed: unknown[] = [];
    for (let tried = 0; tried < 200; tried += 4)
      await Promise.all(
        [0, 1, 2, 3].map(async (offset) => {
          const code = 1 + ((tried + offset) % 100);
          const { sandbox, lines } = await started(['/bin/sh', '-c', `echo last line; exit ${code}`]);
          const exit = await sandbox.exited;
          if (exit.exitCode !== code || lines.at(-1) !== 'stdout last line')
            missed.push({ code, exit, lines });
        }),
      );
    expect(missed).toEqual([]);
  }, 240_000);

  it('gets its standard input, and both of its outputs are told apart', async () => {
    const { sandbox, lines } = await started([
      '/bin/sh',
      '-c',
      'head -n 1; echo complaint >&2; printf unended',
    ]);
    expect(await sandbox.exited).toEqual({ exitCode: 0, signal: null });
    expect([...lines].sort()).toEqual(['stderr complaint', 'stdout from the executor', 'stdout unended']);
  });

  it('that runs is ended by stop, with the signals in order', async () => {
    const patient = await started([
      '/bin/sh',
      '-c',
      'trap "echo told; exit 9" TERM; echo up; while true; do sleep 0.05; done',
    ]);
    while (!patient.lines.includes('stdout up')) await new Promise((resolve) => setTimeout(resolve, 20));
    await patient.sandbox.stop({ graceMs: 10_000 });
    expect(await patient.sandbox.exited).toEqual({ exitCode: 9, signal: null });
    expect(patient.lines).toContain('stdout told');

    const deaf = await started(['/bin/sh', '-c', 'trap "" TERM; while true; do sleep 0.05; done']);
    await deaf.sandbox.stop({ graceMs: 200 });
    await deaf.sandbox.stop({ graceMs: 0 });
    expect(await deaf.sandbox.exited).toEqual({ exitCode: null, signal: 'SIGKILL' });
  });

  it('that is out of memory says so, whatever its exit code is made of (P42)', async () => {
    const eat = 'const all = []; for (;;) all.push(Buffer.alloc(8 << 20, 1));';
    const { sandbox } = await started(['node', '-e', eat], { memoryBytes: 64 * 1024 ** 2 });
    expect(await sandbox.exited).toMatchObject({ signal: 'SIGKILL', cause: 'out_of_memory' });
  });

  it('that somebody else removes has ended, and nobody knows how', async () => {
    const { sandbox } = await started(['/bin/sh', '-c', 'sleep 600']);
    const [found] = await containersBelow(docker, dir);
    await docker.getContainer(found?.Id ?? '').remove({ force: true });
    expect((await sandbox.exited).exitCode).toBeNull();
    await sandbox.stop({ graceMs: 0 });
  });

  it('whose image lacks the program ends at once, and its init says what is missing', async () => {
    const { sandbox, lines } = await started(['no-such-node', 'x']);
    expect(await sandbox.exited).toEqual({ exitCode: 127, signal: null });
    expect(lines.join('\n')).toContain('no-such-node');
  });

  it('of an image that went away is a start that failed, with that cause', async () => {
    const { sandbox } = await started(['node'], { image: 'boardwalk-fleet-none:none' });
    expect(await sandbox.exited).toMatchObject({ cause: 'image_missing' });
  });
});
