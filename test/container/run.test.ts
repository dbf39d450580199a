// Runs in real containers, the whole way: control plane, poller, executor, engine, shipper.

import type Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { INSIDE } from '../../src/executor/sandbox/container/createOptions.js';
import { runDev, WorkflowFolders } from '../support/dev.js';
import { containersBelow, engineEnvironment, testEngine } from '../support/engine.js';
import { HELLO, startLocalFleet, type LocalFleet, type Row } from '../support/localFleet.js';

const GIB = 1024 ** 3;

let docker: Docker;
beforeAll(async () => {
  docker = await testEngine();
});

describe('a fleet whose executor uses containers', () => {
  let fleet: LocalFleet;
  beforeAll(async () => {
    const environment = {
      ...engineEnvironment(),
      BOARDWALK_FLEET_MEMORY: '1g',
      BOARDWALK_FLEET_CPUS: '1',
      BOARDWALK_FLEET_PIDS: '300',
      HTTPS_PROXY: 'http://proxy.test:3128',
    };
    fleet = await startLocalFleet({ executors: 1, slots: 2, sandbox: 'container', environment });
  });
  afterAll(async () => {
    const codes = await fleet.stop();
    expect(Object.values(codes).filter((code) => code !== 0)).toEqual([]);
    expect(await containersBelow(docker, fleet.dir)).toEqual([]);
  });

  /** The one run's end and its rows. */
  async function runOf(
    source: string,
    input: unknown = {},
  ): Promise<{ output: unknown; rows: readonly Row[] }> {
    const ids = await fleet.admin.createRuns({ source, input });
    const [view] = await fleet.admin.finished(ids);
    expect(view?.error).toBeNull();
    return { output: view?.output, rows: await fleet.admin.rows(ids[0] ?? '') };
  }

  it('sets every limit in the engine, mounts nothing but the run’s own, and leaves nothing (R3, R5)', async () => {
    const ids = await fleet.admin.createRuns({
      source: `import { phase, sleep } from '@boardwalk-labs/workflow';
        export default async () => { phase('Here'); await sleep('1h'); }`,
    });
    await fleet.admin.someRun(ids, 'Here');
    const [found] = await containersBelow(docker, fleet.dir);
    const { HostConfig, Config, Mounts, State } = await docker.getContainer(found?.Id ?? '').inspect();
    expect(State.Running).toBe(true);
    expect(HostConfig).toMatchObject({
      Memory: GIB,
      MemorySwap: GIB,
      NanoCpus: 1e9,
      PidsLimit: 300,
      ReadonlyRootfs: true,
      Init: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Privileged: false,
      NetworkMode: 'boardwalk-fleet',
      RestartPolicy: { Name: 'no' },
      LogConfig: { Type: 'json-file', Config: { 'max-file': '1' } },
    });
    expect(Config.User).not.toMatch(/^0?(?::|$)/);
    expect(Config.Labels).toMatchObject({
      'boardwalk-fleet.fleet': fleet.name,
      'boardwalk-fleet.run': ids[0],
      'boardwalk-fleet.sandbox': expect.stringMatching(/./) as string,
      'boardwalk-fleet.executor': expect.stringMatching(/./) as string,
      'boardwalk-fleet.boot-id': expect.stringMatching(/./) as string,
    });
    const targets = Mounts.map(({ Destination, RW }) => `${Destination} ${RW ? 'rw' : 'ro'}`).sort();
    expect(targets).toEqual([
      '/opt/boardwalk-fleet/gateway ro',
      '/opt/boardwalk-fleet/runtime ro',
      '/workspace rw',
    ]);
    // What the engine can show of it names no credential: not in the environment, not in the command, not in a label.
    const shown = JSON.stringify({
      Config,
      Args: (await docker.getContainer(found?.Id ?? '').inspect()).Args,
    });
    for (const secret of ['Bearer', 'bearer', 'rtk_', 'TOKEN=']) expect(shown).not.toContain(secret);
    await fleet.admin.call('POST', `runs/${ids[0] ?? ''}/cancel`);
    expect((await fleet.admin.finished(ids))[0]?.status).toBe('cancelled');
    await fleet.idle();
    expect(await containersBelow(docker, fleet.dir)).toEqual([]);
  });

  it('shows a program the places and the environment of the protocol, and nothing to change outside of them (pool.md 12)', async () => {
    const { output } = await runOf(`
      import { accessSync, constants, readFileSync, statSync, writeFileSync } from 'node:fs';
      const tried = (work) => { try { work(); return 'done'; } catch (error) { return error.code; } };
      export default () => ({
        cwd: process.cwd(), root: process.env.WORKSPACE_ROOT, home: process.env.HOME, tmp: process.env.TMPDIR,
        proxy: process.env.HTTPS_PROXY, uid: process.getuid(), node: process.versions.node.split('.')[0],
        workspace: tried(() => writeFileSync('/workspace/mine', 'x')),
        tmpFile: tried(() => writeFileSync('/tmp/mine', 'x')),
        rootFile: tried(() => writeFileSync('/mine', 'x')),
        runtime: tried(() => writeFileSync('${INSIDE.sdk}/mine', 'x')),
        capabilities: /CapEff:\\t(\\w+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1],
        privileges: /NoNewPrivs:\\t(\\d)/.exec(readFileSync('/proc/self/status', 'utf8'))[1],
        first: readFileSync('/proc/1/cmdline', 'utf8').split('\\0')[0].split('/').at(-1),
      });`);
    expect(output).toMatchObject({
      cwd: '/workspace',
      root: '/workspace',
      home: expect.stringMatching(/^\//) as string,
      tmp: '/tmp',
      proxy: 'http://proxy.test:3128',
      node: '24',
      workspace: 'done',
      tmpFile: 'done',
      rootFile: 'EROFS',
      capabilities: '0000000000000000',
      privileges: '1',
    });
    expect((output as { uid: number }).uid).not.toBe(0);
  });

  it('hands on the last of 9,000 lines, and the notice for the 10,001st (R27)', async () => {
    const printing = `export default ({ lines }) => { for (let n = 1; n <= lines; n += 1) console.log('line ' + n); return lines; }`;
    const printed = async (lines: number): Promise<readonly string[]> => {
      const { rows } = await runOf(printing, { lines });
      return rows
        .filter(({ event }) => event.kind === 'program_output')
        .map(({ event }) => String(event['text']));
    };
    const all = await printed(9_000);
    expect(all.length).toBe(9_000);
    expect(all.at(-1)).toContain('line 9000');
    const cut = await printed(10_001);
    expect(cut.length).toBe(10_001);
    expect(cut.at(-2)).toContain('line 10000');
    expect(cut.at(-1)).toBe(
      '[boardwalk] The program has printed 10000 lines; further output is not recorded.',
    );
  });

  it('ends a program that eats all memory with the reason, and the next run is fine (P42)', async () => {
    const source = `export default () => { const all = []; for (;;) all.push(Buffer.alloc(16 << 20, 1)); }`;
    const ids = await fleet.admin.createRuns({ source });
    const [view] = await fleet.admin.finished(ids);
    expect(view?.status).toBe('failed');
    expect((await runOf('export default () => 1;')).output).toBe(1);
    await fleet.idle();
    expect(await containersBelow(docker, fleet.dir)).toEqual([]);
  });
});

describe('dev without --host', () => {
  let folders: WorkflowFolders;
  beforeAll(async () => {
    folders = await WorkflowFolders.open();
  });
  afterAll(() => folders.remove());

  it('runs the example in a container: an agent turn, its reset, the output, and nothing is left', async () => {
    const before = await docker.listContainers({ all: true });
    const { code, rows, result } = await runDev([HELLO], engineEnvironment());
    expect(result).toMatchObject({ status: 'completed', error: null });
    expect(code).toBe(0);
    const kinds = rows.map(({ event }) => event.kind);
    const order = ['run_status', 'turn_started', 'text_delta', 'turn_reset', 'turn_ended', 'output'];
    const places = order.map((kind) => kinds.indexOf(kind));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places).not.toContain(-1);
    expect(await docker.listContainers({ all: true })).toHaveLength(before.length);
  });

  it('gives a run what --mount names, read-only unless said otherwise', async () => {
    const data = await folders.make({ 'words.txt': 'from the host' });
    const dir = await folders.make({
      'index.mjs': `import { readFileSync, writeFileSync } from 'node:fs';
        export default () => {
          const text = readFileSync('/data/words.txt', 'utf8');
          try { writeFileSync('/data/new', ''); return text + ', writable'; } catch (error) { return text + ', ' + error.code; }
        };`,
    });
    const { result } = await runDev([dir, '--mount', `${data}:/data`], engineEnvironment());
    expect(result?.output).toBe('from the host, EROFS');
  });

  it('says within 30 s that an image can’t be had (P38)', async () => {
    const began = performance.now();
    const environment = { ...engineEnvironment(), BOARDWALK_FLEET_IMAGE: 'registry.invalid/none/such:1' };
    const { code, stderr } = await runDev([HELLO], environment);
    expect(stderr).toContain('The image registry.invalid/none/such:1 can’t be had'.replace('’', "'"));
    expect(stderr).toContain('--image REF');
    expect(stderr).not.toContain('    at ');
    expect(code).toBe(1);
    expect(performance.now() - began).toBeLessThan(30_000);
  });
});
