// What an engine is told of a sandbox: every limit, and nothing that is secret.

import { describe, expect, it } from 'vitest';
import {
  createOptions,
  type ContainerOwner,
  type ContainerSettings,
} from '../../../../../src/executor/sandbox/container/createOptions.js';

const RUN = {
  sandboxId: 'sbx_1',
  runId: 'run_1',
  env: { RUN_ID: 'run_1', TMPDIR: '/tmp' },
  workspaceDir: '/srv/fleet/x/ab/runs/run_1-1/workspace',
  gatewayDir: '/srv/fleet/x/ab/4',
};

const SETTINGS: ContainerSettings = {
  image: 'node:24-bookworm-slim',
  network: 'boardwalk-fleet',
  mounts: [{ source: '/srv/models', target: '/models', readOnly: true }],
  memoryBytes: 2 * 1024 ** 3,
  cpus: 1.5,
  pids: 512,
  logBytes: 1_048_576,
};

const OWNER: ContainerOwner = {
  fleetName: 'night',
  executorId: 'exe_1',
  bootId: 'boot_1',
  home: '/srv/fleet/x/ab',
  user: { uid: 1_000, gid: 1_000 },
  runtimeDir: '/srv/fleet/x/ab/runtime',
};

describe('the options of a sandbox’s container', () => {
  const options = createOptions(RUN, SETTINGS, OWNER);
  const host = options.HostConfig;

  it('bound memory, processors, processes and log, and give no swap beyond the memory (R5)', () => {
    expect(host).toMatchObject({
      Memory: 2 * 1024 ** 3,
      MemorySwap: 2 * 1024 ** 3,
      NanoCpus: 1_500_000_000,
      PidsLimit: 512,
      LogConfig: { Type: 'json-file', Config: { 'max-size': '1048576', 'max-file': '1' } },
    });
    expect(Object.values(host?.Tmpfs as Record<string, string>)).toEqual(
      Array.from({ length: 2 }, () => expect.stringContaining('size=1073741824') as string),
    );
  });

  it('take every privilege, and leave nothing to write but workspace and memory', () => {
    expect(host).toMatchObject({
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Init: true,
    });
    expect(host).not.toHaveProperty('Privileged');
    expect(options.User).toBe('1000:1000');
    const mounts = host?.Mounts as readonly { Source: string; Target: string; ReadOnly: boolean }[];
    expect(mounts.map(({ Source, Target, ReadOnly }) => [Source, Target, ReadOnly])).toEqual([
      [RUN.workspaceDir, '/workspace', false],
      [RUN.gatewayDir, '/opt/boardwalk-fleet/gateway', true],
      [OWNER.runtimeDir, '/opt/boardwalk-fleet/runtime', true],
      ['/srv/models', '/models', true],
    ]);
  });

  it('keep the end of a container for us: the engine removes and restarts nothing', () => {
    expect(host).toMatchObject({ AutoRemove: false, RestartPolicy: { Name: 'no' } });
  });

  it('say whose it is, in labels that a reaper on any host can read (R3, P35)', () => {
    expect(options.Labels).toEqual({
      'boardwalk-fleet.fleet': 'night',
      'boardwalk-fleet.executor': 'exe_1',
      'boardwalk-fleet.boot-id': 'boot_1',
      'boardwalk-fleet.sandbox': 'sbx_1',
      'boardwalk-fleet.run': 'run_1',
      'boardwalk-fleet.home': '/srv/fleet/x/ab',
    });
  });

  it('ignore what an image would start, and check for', () => {
    expect(options.Entrypoint).toEqual(['node', '/opt/boardwalk-fleet/runtime/watchdog.mjs']);
    expect(options.Cmd).toEqual([]);
    expect(options.Healthcheck).toEqual({ Test: ['NONE'] });
  });
});
