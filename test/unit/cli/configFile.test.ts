import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/cli/configFile.js';
import { resolveSettings } from '../../../src/cli/givenSettings.js';
import type { SettingName } from '../../../src/cli/settings.js';

let dir = '';
let path = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'bwf-config-'));
  path = join(dir, 'boardwalk-fleet.yaml');
});
afterEach(() => rm(dir, { recursive: true }));

async function read(
  text: string,
  name: SettingName,
  given: { flags?: Record<string, string | boolean>; environment?: Record<string, string> } = {},
): Promise<unknown> {
  await writeFile(path, text, { mode: 0o600 });
  const file = readConfig({ where: '--config', path });
  return resolveSettings([name], { flags: {}, environment: {}, ...given, file })[name];
}

describe('a file of settings', () => {
  it('is stronger than a default, weaker than a variable, and that weaker than a flag', async () => {
    const environment = { BOARDWALK_FLEET_SLOTS: '7' };
    expect(await read('slots: 5', 'slots')).toBe(5);
    expect(await read('slots: 5', 'slots', { environment })).toBe(7);
    expect(await read('slots: 5', 'slots', { environment, flags: { slots: '9' } })).toBe(9);
    expect(await read('pool: x', 'slots')).toBe(4);
  });

  it.each([
    ['cpus: 1.5', 'cpus', 1.5],
    ['memory: 2g', 'memory', 2_147_483_648],
    ['drain-timeout: 90s', 'drainTimeout', 90_000],
    ['verbose: true', 'verbose', true],
    ['verbose: "no"', 'verbose', false],
    ['pool: "a"', 'pool', 'a'],
    ['pool: 007', 'pool', '007'],
    ['pool: yes', 'pool', 'yes'],
    ['pool: true', 'pool', 'true'],
    ['labels: [gpu, 007, "a,b"]', 'labels', ['gpu', '007', 'a,b']],
    ['labels: gpu,fast', 'labels', ['gpu', 'fast']],
    ['roles:\n  - poller\n  - shipper', 'roles', ['poller', 'shipper']],
    ['sandbox-user: 1000:50', 'sandboxUser', { uid: 1000, gid: 50 }],
    ['mount:\n  - /a:/b:rw', 'mount', [{ source: '/a', target: '/b', readOnly: false }]],
    ['cpus: &a 6\nslots: *a', 'slots', 6],
    ['slots:', 'slots', 4],
    ['slots: ~', 'slots', 4],
    ['', 'slots', 4],
    ['# only words\n', 'slots', 4],
    ['---\n...\n', 'slots', 4],
  ] as const)('%j gives %s the value %j', async (text, name, value) => {
    expect(await read(text, name)).toEqual(value);
  });

  it('may hold what another command takes, whatever its value', async () => {
    expect(await read('slots: 5\nport: nonsense', 'slots')).toBe(5);
  });

  it.each([
    ['slots: many', 'slots', ':1: slots: "many" must be a whole number from 1 to 1000.'],
    ['\n\nslots: 0x10', 'slots', ':3: slots: "0x10" must be a whole number'],
    ['slots: [1, 2]', 'slots', ':1: slots: ["1","2"] must be a single value.'],
    ['pool: [a]', 'pool', ':1: pool: ["a"] must be a single value.'],
    ['pool: ""', 'pool', ':1: pool: "" must not be empty.'],
    ['host: maybe', 'host', ':1: host: "maybe" must be true or false.'],
    ['host: [true]', 'host', ':1: host: ["true"] must be true or false.'],
    ['sandbox: [process]', 'sandbox', ':1: sandbox: ["process"] must be container or process.'],
    ['mount: [a:b]', 'mount', ':1: mount: ["a:b"] must have absolute paths.'],
    ['redis-url: redis://u:hush@h/x', 'redisUrl', ':1: redis-url: the value must be redis://HOST:PORT'],
    ['slots:\n  a: 1', 'slots', ':1: slots: must be a value or a list of values.'],
    ['roles: [[poller]]', 'roles', ':1: roles: each part of the list must be a value.'],
    ['roles: [~]', 'roles', ':1: roles: each part of the list must be a value.'],
    ['slots: *none', 'slots', ':1: slots: '],
    ['pool: a\nslots: 1\nslots: 2', 'slots', ':3: slots is there twice.'],
    ['- a\n- b', 'slots', ':1: the file must hold settings, one `key: value` a line.'],
    ['just words', 'slots', ':1: the file must hold settings'],
    ['{a: 1}: 2', 'slots', ':1: a key must be the name of a setting.'],
    ['a: 1\n---\nb: 2', 'slots', ':2: the file must be one YAML document.'],
    ['pool: x\n\tslots: 2', 'slots', 'is not indented as YAML must be'],
    ['pool: "x', 'slots', 'a quote, a bracket or a colon is missing.'],
    ['pool: [x', 'slots', 'or a bracket is not closed.'],
    ['pool: !env X', 'slots', ':1: has a YAML tag (!…) that is not known here.'],
    ['pool: @x', 'slots', ':1: is no YAML.'],
    ['poool: x\n', 'slots', ':1: poool: no such setting.'],
  ] as const)('that says %j for %s is refused with file and line', async (text, name, words) => {
    const refusal = read(text, name);
    await expect(refusal).rejects.toMatchObject({
      usage: true,
      message: expect.stringContaining(words) as string,
    });
    await expect(refusal).rejects.toThrow(path);
    await expect(refusal).rejects.not.toThrow('hush');
  });

  it.each([
    ['slot', 'slots'],
    ['redisUrl', 'redis-url'],
    ['redis_url', 'redis-url'],
    ['--slots', 'slots'],
    ['redis-pasword-file', 'redis-password-file'],
  ])('that says %s is asked whether it means %s', async (key, meant) => {
    await expect(read(`"${key}": x`, 'slots')).rejects.toMatchObject({ hint: `Did you mean ${meant}?` });
  });

  it('is asked nothing about a key that is like no other, or like one that has no place in it', async () => {
    await expect(read('bandwidth: 3', 'slots')).rejects.toMatchObject({ hint: undefined });
    await expect(read('tokens: 3', 'slots')).rejects.toMatchObject({ hint: undefined });
  });

  it.each(['token', 'config', 'once', 'force', 'out', 'input', 'json', 'script', 'runs'])(
    'can not hold %s, which is for one command',
    async (key) => {
      await expect(read(`${key}: bwkreg_hush`, 'slots')).rejects.toMatchObject({
        usage: true,
        message: `${path}:1: ${key} can't be set in a file.`,
        hint: expect.stringContaining(`--${key}`) as string,
      });
    },
  );

  it('that somebody named must be there', () => {
    expect(() => readConfig({ where: '--config', path })).toThrow(
      `--config: the file ${path} can't be read (ENOENT).`,
    );
    expect(() => readConfig({ where: 'BOARDWALK_FLEET_CONFIG', path: dir })).toThrow(
      `BOARDWALK_FLEET_CONFIG: the file ${dir} can't be read (EISDIR).`,
    );
  });

  it('that nobody named is the one in the directory, if it is there', async () => {
    expect(readConfig(null, dir).size).toBe(0);
    await writeFile(path, 'slots: 5');
    expect(readConfig(null, dir).get('slots')).toMatchObject({ place: `${path}:1`, value: '5' });
  });
});

describe('a secret in a file of settings', () => {
  it('may stand there when only the owner reads it', async () => {
    expect(await read('redis-password: 0123', 'redisPassword')).toBe('0123');
    expect(await read('redis-password: true', 'redisPassword')).toBe('true');
  });

  it('is refused when others may read it too, without a word of it', async () => {
    await writeFile(path, 'pool: x\nredis-password: hush');
    for (const mode of [0o640, 0o604, 0o660]) {
      await chmod(path, mode);
      const refuse = (): unknown => readConfig(null, dir);
      expect(refuse).toThrow(
        expect.objectContaining({
          usage: true,
          message: `${path}:2: redis-password is a secret, and others may read this file.`,
          hint: expect.stringContaining(`chmod 600 ${path}`) as string,
        }),
      );
      expect(refuse).not.toThrow('hush');
    }
  });

  it.each([
    'redis-password: [hush',
    'redis-password: "hush',
    'redis-password: {a: hush}',
    'redis-password: [hush]',
  ])('is not quoted by an error: %s', async (text) => {
    const refusal = read(text, 'redisPassword');
    await expect(refusal).rejects.toMatchObject({ usage: true });
    await expect(refusal).rejects.not.toThrow('hush');
  });

  it('may be in a file of its own beside it, whoever reads this one', async () => {
    await writeFile(join(dir, 'password'), 'hush\n');
    await writeFile(path, 'redis-password-file: ./password\nrunner-token-file: none');
    await chmod(path, 0o644);
    const file = readConfig(null, dir);
    const given = { flags: {}, environment: {}, file };
    expect(resolveSettings(['redisPassword'], given).redisPassword).toBe('hush');
    expect(() => resolveSettings(['runnerToken'], given)).toThrow(
      `${path}:2: runner-token-file: the file ${join(dir, 'none')} can't be read (ENOENT).`,
    );
  });

  it.each(['""', '[a]'])('has no file that is called %s', async (value) => {
    await expect(read(`redis-password-file: ${value}`, 'redisPassword')).rejects.toThrow(
      'redis-password-file: the value must be the path of a file.',
    );
  });

  it('is given in one way only', async () => {
    await expect(read('redis-password: a\nredis-password-file: b', 'redisPassword')).rejects.toThrow(
      ':2: redis-password-file and redis-password are the same setting.',
    );
  });
});

describe('host and sandbox, two words for one thing', () => {
  it('follow the stronger place when both are given', async () => {
    const both = async (text: string, flags: Record<string, string | boolean>): Promise<unknown> => [
      await read(text, 'host', { flags }),
      await read(text, 'sandbox', { flags }),
    ];
    expect(await both('sandbox: container', { host: true })).toEqual([true, undefined]);
    expect(await both('host: true', { sandbox: 'container' })).toEqual([false, 'container']);
    expect(await both('sandbox: process', { host: false })).toEqual([false, 'process']);
    expect(await both('sandbox: container\nhost: true', {})).toEqual([true, 'container']);
  });
});
