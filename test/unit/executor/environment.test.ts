// What the run process finds in its environment, and what it must never find there.

import { describe, expect, it } from 'vitest';
import { sandboxEnvironment, type EnvironmentInput } from '../../../src/executor/sandbox/environment.js';

interface Changes {
  readonly own?: Record<string, string>;
  readonly claimEnv?: Record<string, string>;
  readonly byoProviders?: readonly unknown[];
}

function input({ own = {}, claimEnv = {}, byoProviders = [] }: Changes = {}): EnvironmentInput {
  return {
    kind: 'process',
    forwarded: own,
    credential: {
      runId: 'run_q7',
      workerId: 'rnr_lab3/asg_5',
      env: claimEnv,
      byoProviders: [...byoProviders],
    },
    paths: { workspace: '/srv/runs/run_q7-1/workspace', tmp: '/srv/runs/run_q7-1/tmp' },
  };
}

describe('the environment of the run process', () => {
  it('holds the platform keys and the directories of the run, and nothing else by itself', () => {
    const provider = {
      name: 'office-llm',
      source: 'openai_compatible',
      base_url: null,
      auth_secret_name: null,
    };
    expect(sandboxEnvironment(input({ byoProviders: [provider] }))).toEqual({
      HOME: '/srv/runs/run_q7-1/workspace',
      TMPDIR: '/srv/runs/run_q7-1/tmp',
      RUN_ID: 'run_q7',
      WORKER_ID: 'rnr_lab3/asg_5',
      WORKSPACE_ROOT: '/srv/runs/run_q7-1/workspace',
      BOARDWALK_BYO_PROVIDERS: JSON.stringify([provider]),
    });
  });

  it('of a container names its own places, whatever executor or claim say of them, and has no PATH of the host', () => {
    const env = sandboxEnvironment({
      ...input({
        own: { PATH: '/host/bin', HOME: '/root' },
        claimEnv: { TMPDIR: '/elsewhere', REGION: 'north' },
      }),
      kind: 'container',
      paths: { workspace: '/workspace', tmp: '/tmp' },
    });
    expect(env).toMatchObject({ WORKSPACE_ROOT: '/workspace', TMPDIR: '/tmp', REGION: 'north' });
    expect(env).not.toHaveProperty('PATH');
    expect(env['HOME']).not.toBe('/root');
  });

  it('takes from the executor only what the protocol names', () => {
    const env = sandboxEnvironment(
      input({
        own: {
          PATH: '/usr/bin',
          DISPLAY: ':0',
          LANG: 'C.UTF-8',
          https_proxy: 'http://proxy:3128',
          BOARDWALK_RUNNER_DEBUG: '1',
          BOARDWALK_BROWSER_PATH: '/usr/bin/chromium',
          BOARDWALK_FLEET_REDIS_URL: 'redis://secret@host',
          BOARDWALK_FLEET_KEY_FILE: '/etc/fleet.key',
          AWS_SECRET_ACCESS_KEY: 'cloud',
          NODE_OPTIONS: '--inspect',
          HOME: '/root',
          PATHEXT: '.exe',
        },
      }),
    );
    expect(env).toMatchObject({
      PATH: '/usr/bin',
      DISPLAY: ':0',
      LANG: 'C.UTF-8',
      https_proxy: 'http://proxy:3128',
      BOARDWALK_RUNNER_DEBUG: '1',
      BOARDWALK_BROWSER_PATH: '/usr/bin/chromium',
    });
    const leaked = [
      'BOARDWALK_FLEET_REDIS_URL',
      'BOARDWALK_FLEET_KEY_FILE',
      'AWS_SECRET_ACCESS_KEY',
      'NODE_OPTIONS',
      'PATHEXT',
    ];
    expect(Object.keys(env)).not.toEqual(
      expect.arrayContaining([expect.toSatisfy((key) => leaked.includes(String(key)))]),
    );
    expect(env['HOME']).toBe('/srv/runs/run_q7-1/workspace');
  });

  it('lets the claim override what was forwarded and HOME and TMPDIR, but never a platform key', () => {
    const env = sandboxEnvironment(
      input({
        own: { LANG: 'C', PATH: '/usr/bin' },
        claimEnv: {
          LANG: 'de_DE.UTF-8',
          HOME: '/home/x',
          TMPDIR: '/scratch',
          REGION: 'north',
          RUN_ID: 'other',
          WORKER_ID: 'w',
          WORKSPACE_ROOT: '/',
        },
      }),
    );
    expect(env).toMatchObject({
      LANG: 'de_DE.UTF-8',
      PATH: '/usr/bin',
      HOME: '/home/x',
      TMPDIR: '/scratch',
      REGION: 'north',
      RUN_ID: 'run_q7',
      WORKER_ID: 'rnr_lab3/asg_5',
      WORKSPACE_ROOT: '/srv/runs/run_q7-1/workspace',
    });
  });

  it('has no credential and no control plane in it, even if the claim carries such keys (R14)', () => {
    const withheld = [
      'BOARDWALK_RUN_TOKEN',
      'BOARDWALK_API_KEY',
      'BOARDWALK_CONTROL_PLANE_URL',
      'PERSIST_SCOPE_DIR',
      'BOARDWALK_HOST_SOCK',
    ];
    const values = Object.fromEntries(withheld.map((key) => [key, 'x']));
    const env = sandboxEnvironment(input({ own: values, claimEnv: values }));
    for (const key of withheld) expect(env).not.toHaveProperty(key);
  });

  it.each([
    ['', 'v'],
    ['A=B', 'v'],
    ['A\0B', 'v'],
    ['A', 'sealed-value\0'],
  ])('refuses the impossible variable %j without showing its value', (key, value) => {
    expect(() => sandboxEnvironment(input({ claimEnv: { [key]: value } }))).toThrow(
      expect.objectContaining({
        code: 'ENVIRONMENT_INVALID',
        message: expect.not.stringContaining('sealed-value') as string,
      }),
    );
  });

  it('keeps names that mean something to JavaScript as plain variables', () => {
    const env = sandboxEnvironment(
      input({ claimEnv: JSON.parse('{"__proto__":"p","constructor":"c"}') as Record<string, string> }),
    );
    expect(Object.entries(env)).toEqual(
      expect.arrayContaining([
        ['__proto__', 'p'],
        ['constructor', 'c'],
      ]),
    );
  });
});
