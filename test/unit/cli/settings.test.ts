import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseDurationText } from '../../../src/cli/durations.js';
import { resolveSettings, unknownVariables } from '../../../src/cli/givenSettings.js';
import { flagOf, variableOf } from '../../../src/cli/settings.js';

describe('a setting', () => {
  it('is a flag and a variable of the same name', () => {
    expect(flagOf('redisUrl')).toBe('--redis-url');
    expect(variableOf('redisUrl')).toBe('BOARDWALK_FLEET_REDIS_URL');
    expect(variableOf('fleetKeyFile')).toBe('BOARDWALK_FLEET_FLEET_KEY_FILE');
  });

  it('comes from the flag first, then from the variable, then from its default', () => {
    const environment = { BOARDWALK_FLEET_SLOTS: '7' };
    expect(resolveSettings(['slots'], { flags: { slots: '9' }, environment }).slots).toBe(9);
    expect(resolveSettings(['slots'], { flags: {}, environment }).slots).toBe(7);
    expect(resolveSettings(['slots'], { flags: {}, environment: {} }).slots).toBe(4);
  });

  it('that is empty in the environment counts as not given', () => {
    expect(resolveSettings(['pool'], { flags: {}, environment: { BOARDWALK_FLEET_POOL: '' } }).pool).toBe(
      'default',
    );
  });

  it.each([
    ['slots', 'many', '--slots: "many" must be a whole number from 1 to 1000'],
    ['slots', '0', '--slots: "0" must be a whole number'],
    ['roles', 'poller,cook', 'must be some of poller, executor, shipper'],
    ['roles', ' , ', 'must name a role'],
    ['url', 'ftp://host', 'must be an http:// or https:// address'],
    ['redisUrl', 'http://host', 'must be redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH'],
    ['pollHold', '22', 'must be a time such as 22s, 5m or 500ms'],
    ['input', '{', 'must be JSON'],
    ['redisUrl', 'redis://host/abc', '--redis-url: the value must be redis://HOST:PORT'],
    ['pollHold', '1000h', 'must be at most 596h'],
    ['lease', '1000h', 'must be at most 596h'],
    ['lease', '0s', 'must be at least 1000 ms'],
    ['url', 'https://cp.example/?org=1', 'must not hold a query or a fragment'],
    ['fleet', 'a b', 'must be 1 to 64 of'],
    ['fleet', '.hidden', 'begin with a letter or a digit'],
  ] as const)('%s that is %j is refused in words', (name, value, words) => {
    expect(() => resolveSettings([name], { flags: { [name]: value }, environment: {} })).toThrow(words);
  });

  it.each([
    ['redisUrl', 'redis//user:s3cretpw@host'],
    ['redisUrl', 'redis://user:s3cretpw/x@host'],
    ['redisUrl', 'redis://user:s3cretpw%@host'],
    ['url', 'https://bob:s3cretpw@cp.example'],
    ['url', 'cp.example/bob:s3cretpw@'],
  ] as const)('%s is refused as %j without a word of the password in it', (name, value) => {
    const refuse = (): unknown =>
      resolveSettings([name], { flags: {}, environment: { [variableOf(name)]: value } });
    expect(refuse).toThrow(expect.objectContaining({ usage: true }));
    expect(refuse).not.toThrow('s3cretpw');
  });

  it('says where a wrong value was given', () => {
    expect(() =>
      resolveSettings(['host'], { flags: {}, environment: { BOARDWALK_FLEET_HOST: 'maybe' } }),
    ).toThrow('BOARDWALK_FLEET_HOST: "maybe" must be true or false');
  });

  it('with our prefix that does not exist is found', () => {
    expect(
      unknownVariables({
        BOARDWALK_FLEET_SLOT: '1',
        BOARDWALK_FLEET_REDIS_PASSWORD_FILE: 'x',
        BOARDWALK_FLEET_POOL: 'x',
        PATH: 'x',
      }),
    ).toEqual(['BOARDWALK_FLEET_SLOT']);
  });
});

describe('a secret setting', () => {
  let dir = '';
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bwf-settings-'));
    await writeFile(join(dir, 'password'), 'hush-hush\n');
  });
  afterAll(() => rm(dir, { recursive: true }));

  it('is read from a file, without its line end', () => {
    const environment = { BOARDWALK_FLEET_REDIS_PASSWORD_FILE: join(dir, 'password') };
    expect(resolveSettings(['redisPassword'], { flags: {}, environment }).redisPassword).toBe('hush-hush');
  });

  it('can not be given as a flag: arguments are public', () => {
    expect(
      resolveSettings(['redisPassword'], { flags: { redisPassword: 'x' }, environment: {} }).redisPassword,
    ).toBe(undefined);
  });

  it('whose file is missing is an error that names variable and file', () => {
    const environment = { BOARDWALK_FLEET_REDIS_PASSWORD_FILE: join(dir, 'none') };
    expect(() => resolveSettings(['redisPassword'], { flags: {}, environment })).toThrow(
      /BOARDWALK_FLEET_REDIS_PASSWORD_FILE: the file .*none can't be read \(ENOENT\)/,
    );
  });
});

describe('a time', () => {
  it.each([
    ['500ms', 500],
    ['22s', 22_000],
    ['1.5m', 90_000],
    ['2h', 7_200_000],
    ['22', null],
    ['-1s', null],
    ['1w', null],
    ['', null],
  ])('%j is %j ms', (text, ms) => {
    expect(parseDurationText(text)).toBe(ms);
  });
});
