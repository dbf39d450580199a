// `config print`: what it prints is a file that says the same, and no secret is in it.

import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configPrint } from '../../../src/cli/commands.js';
import { CommandLine, type Terminal } from '../../../src/cli/program.js';
import {
  COMMAND_SETTINGS,
  FILE_SETTINGS,
  keyOf,
  SETTINGS,
  variableOf,
  type SettingName,
} from '../../../src/cli/settings.js';
import type { Setting } from '../../../src/cli/setting.js';
import { configurationPage, CONFIGURATION } from '../../../scripts/docs.js';

let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'bwf-config-'));
});
afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
});

interface Printed {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function print(args: readonly string[], environment: Terminal['environment'] = {}): Promise<Printed> {
  const [out, err] = [new PassThrough(), new PassThrough()];
  const terminal = { environment, stdout: out, stderr: err } as unknown as Terminal;
  const code = await new CommandLine('0.0.0', terminal).add(configPrint).run(['config', 'print', ...args]);
  const textOf = (stream: PassThrough): string => (stream.read() as Buffer | null)?.toString() ?? '';
  return { code, stdout: textOf(out), stderr: textOf(err) };
}

function fileOf(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  chmodSync(path, 0o600);
  return path;
}

interface Told {
  readonly value: unknown;
  readonly source: string;
  readonly masked?: boolean;
  readonly secretFile?: string;
}

async function told(args: readonly string[], environment = {}): Promise<Readonly<Record<string, Told>>> {
  const { stdout, stderr } = await print(['--json', ...args], environment);
  expect(stderr).toBe('');
  return JSON.parse(stdout) as Record<string, Told>;
}

const HARD_WORDS = String.raw`"two words # quoted: 'a' \"b\"\nand a line of its own, \u001b[31m, ${'long '.repeat(30)}"`;

/** One value for each setting that is not its default. */
const OTHERS: Readonly<Partial<Record<SettingName, string>>> = {
  url: 'https://control-plane.example',
  fleet: 'night',
  roles: '[shipper, executor]',
  slots: '9',
  sandbox: 'process',
  host: 'false',
  mount: '[/srv/a:/a:rw, /srv/b:/b]',
  memory: '3g',
  cpus: '0.5',
  pids: '99',
  logSize: '2m',
  sandboxUser: '1200:1300',
  redisUrl: 'rediss://redis.internal:6380',
  drainTimeout: '90s',
  shipperConcurrency: '5',
  verbose: 'true',
  debug: 'true',
  name: '"true"',
  labels: '[gpu, 007, "a,b"]',
  port: '4810',
  pollHold: '5s',
  lease: '60s',
};

describe('config print', () => {
  it('names the source of every value: flag, variable, line of the file, default', async () => {
    const file = fileOf('sources.yaml', '# ours\nslots: 6\npool: night\nimage: file-image\n');
    const environment = { BOARDWALK_FLEET_POOL: 'day', BOARDWALK_FLEET_IMAGE: 'variable-image' };
    const all = await told(['--config', file, '--image', 'flag-image'], environment);
    expect(all['image']).toEqual({ value: 'flag-image', source: '--image' });
    expect(all['pool']).toEqual({ value: 'day', source: 'BOARDWALK_FLEET_POOL' });
    expect(all['slots']).toEqual({ value: 6, source: `${file}:2` });
    expect(all['memory']).toEqual({ value: '2g', source: 'default' });
  });

  it('prints what says the same again, for the defaults and for every setting with another value', async () => {
    const other = FILE_SETTINGS.filter((name) => (SETTINGS[name] as Setting<unknown>).secret !== true)
      .map((name) => `${keyOf(name)}: ${OTHERS[name] ?? HARD_WORDS}`)
      .join('\n');
    for (const text of ['', other]) {
      const first = fileOf('first.yaml', text);
      const before = await told(['--config', first]);
      const { stdout, code } = await print(['--config', first]);
      expect(code).toBe(0);
      const after = await told(['--config', fileOf('second.yaml', stdout)]);
      const values = (of: Readonly<Record<string, Told>>): unknown =>
        Object.fromEntries(Object.entries(of).map(([key, { value }]) => [key, value]));
      expect(values(after)).toEqual(values(before));
    }
  });

  it('shows no secret, wherever it came from', async () => {
    const file = fileOf('secret.yaml', 'redis-password: from-the-file\n');
    const passwordFile = fileOf('password', 'from-a-file-of-its-own\n');
    const environment = {
      [variableOf('redisUrl')]: 'redis://ada:in-the-address@host:1',
      [variableOf('runnerToken')]: 'from-the-variable',
    };
    for (const more of [{}, { [`${variableOf('redisPassword')}_FILE`]: passwordFile }])
      for (const args of [[], ['--json']]) {
        const { stdout } = await print(['--config', file, ...args], { ...environment, ...more });
        expect(stdout).toContain('***@host');
        expect(stdout).not.toMatch(/from-the-|from-a-|in-the-/);
      }
    const { stdout } = await print(['--config', file], environment);
    expect(stdout).toContain(`# redis-password: "***"  # ${file}:1`);
    // A masked value must never become one.
    for (const line of stdout.split('\n').filter((each) => each.includes('***'))) expect(line).toMatch(/^# /);
  });

  it.each([
    ['redis://ada:hush@h:1/2', 'redis://ada:***@h:1/2'],
    ['rediss://:hush@h', 'rediss://:***@h'],
    ['redis://h?password=hush', 'redis://h?***'],
    ['redis://h#hush', 'redis://h'],
  ])('masks the part of %s that may be a secret', async (url, shown) => {
    const environment = { [variableOf('redisUrl')]: url };
    expect((await told([], environment))['redis-url']).toMatchObject({ value: shown, masked: true });
    const { stdout } = await print([], environment);
    expect(stdout).toContain(`# redis-url: ${shown}  #`);
    expect(stdout).not.toContain('hush');
  });

  it.each(['redis://ada@h', 'unix:///run/redis.sock?db=3'])('prints %s as it is', async (url) => {
    const { stdout } = await print(['--redis-url', url]);
    expect(stdout).toContain(`\nredis-url: ${url}  # --redis-url\n`);
  });

  it('shows the path of a secret that has a file of its own, and finds it there again', async () => {
    const secret = fileOf('secret', 'hush\n');
    const first = fileOf('first.yaml', 'redis-password-file: secret');
    const environment = { [`${variableOf('runnerToken')}_FILE`]: secret };
    const { stdout } = await print(['--config', first], environment);
    expect(stdout).toContain(`\nredis-password-file: ${secret}  # ${first}:1\n`);
    expect(stdout).toContain(`\nrunner-token-file: ${secret}  # ${variableOf('runnerToken')}_FILE\n`);
    const second = fileOf('second.yaml', stdout);
    const again = await told(['--config', second]);
    for (const key of ['redis-password', 'runner-token'])
      expect(again[key]).toMatchObject({ value: '***', masked: true, secretFile: secret });
  });

  it('lets no path of a file say more than that', async () => {
    const file = fileOf('x\npool: another', 'slots: 5');
    const { stdout } = await print(['--config', file]);
    expect(stdout).toContain(`\nslots: 5  # ${JSON.stringify(`${file}:1`)}\n`);
  });

  it('takes every flag of start', () => {
    expect(COMMAND_SETTINGS.configPrint).toEqual(expect.arrayContaining([...COMMAND_SETTINGS.start]));
    expect(COMMAND_SETTINGS.configPrint).toEqual(expect.arrayContaining([...FILE_SETTINGS]));
  });

  it('refuses what start refuses', async () => {
    const contradiction = await print(['--host', '--sandbox', 'container']);
    expect(contradiction).toMatchObject({ code: 2, stdout: '' });
    expect(contradiction.stderr).toContain('--host and --sandbox container contradict each other.');
    const { code, stderr } = await print(['--slots', 'many']);
    expect(stderr).toContain('--slots: "many" must be a whole number');
    expect(code).toBe(2);
  });
});

describe('docs/configuration.md', () => {
  it('lists the settings as they are (npm run docs)', async () => {
    const page = readFileSync(CONFIGURATION, 'utf8');
    expect(await configurationPage(page)).toBe(page);
  });
});
