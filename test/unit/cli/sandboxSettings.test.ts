import { describe, expect, it } from 'vitest';
import { resolveSettings, type Given } from '../../../src/cli/givenSettings.js';
import { sandboxOf } from '../../../src/cli/sandboxSettings.js';
import { parseSizeText, sizeText } from '../../../src/cli/sizes.js';

const flags = (given: Given['flags']): Given => ({ flags: given, environment: {} });
const mountsOf = (...mount: string[]): unknown => resolveSettings(['mount'], flags({ mount })).mount;

describe('the kind of sandbox', () => {
  it('is a container unless one of two words says process', () => {
    expect(sandboxOf({ host: false, sandbox: undefined })).toBe('container');
    expect(sandboxOf({ host: false, sandbox: 'container' })).toBe('container');
    expect(sandboxOf({ host: false, sandbox: 'process' })).toBe('process');
    expect(sandboxOf({ host: true, sandbox: undefined })).toBe('process');
    expect(sandboxOf({ host: true, sandbox: 'process' })).toBe('process');
  });

  it('that is said in two ways that contradict each other is an error that names both', () => {
    expect(() => sandboxOf({ host: true, sandbox: 'container' })).toThrow(
      expect.objectContaining({
        usage: true,
        message: '--host and --sandbox container contradict each other.',
      }),
    );
  });
});

describe('a setting of sandboxes', () => {
  it('has a default that suits a small run', () => {
    const names = ['image', 'network', 'mount', 'memory', 'cpus', 'pids', 'logSize', 'sandboxUser'] as const;
    expect(resolveSettings(names, flags({}))).toEqual({
      image: 'node:24-bookworm-slim',
      network: 'boardwalk-fleet',
      mount: [],
      memory: 2 * 1024 ** 3,
      cpus: 2,
      pids: 1024,
      logSize: 10 * 1024 ** 2,
      sandboxUser: undefined,
    });
  });

  it.each([
    ['sandbox', 'vm', '--sandbox: "vm" must be container or process'],
    ['memory', '64m', '--memory: "64m" must be at least 128m'],
    ['memory', 'much', 'must be a size such as 512m, 2g or a number of bytes'],
    ['memory', '9999999999g', 'is more than any machine has'],
    ['logSize', '1k', 'must be at least 64k'],
    ['cpus', '0', 'must be a number from 0.1 to 512'],
    ['cpus', '1e2', 'must be a number from 0.1 to 512'],
    ['cpus', '513', 'must be a number from 0.1 to 512'],
    ['pids', '63', 'must be a whole number from 64 to 100000'],
    ['sandboxUser', 'node', 'must be UID or UID:GID, numbers from 0 to 4294967294'],
    ['sandboxUser', '1:4294967295', 'must be UID or UID:GID'],
    ['sandboxUser', '1:', 'must be UID or UID:GID'],
    ['image', '', 'must not be empty'],
  ] as const)('%s that is %j is refused in words', (name, value, words) => {
    expect(() => resolveSettings([name], flags({ [name]: value }))).toThrow(words);
  });

  it('gives a user the group of the same number unless another is named', () => {
    const userOf = (value: string): unknown =>
      resolveSettings(['sandboxUser'], flags({ sandboxUser: value })).sandboxUser;
    expect(userOf('1000')).toEqual({ uid: 1000, gid: 1000 });
    expect(userOf('1000:0')).toEqual({ uid: 1000, gid: 0 });
    expect(userOf('0:4294967294')).toEqual({ uid: 0, gid: 4294967294 });
  });
});

describe('a mount', () => {
  it('is read-only unless it says rw, and a place has one way to be written', () => {
    expect(mountsOf('/data:/data', '/a//b/:/models/./x/:rw', '/c:/c:ro')).toEqual([
      { source: '/data', target: '/data', readOnly: true },
      { source: '/a/b', target: '/models/x', readOnly: false },
      { source: '/c', target: '/c', readOnly: true },
    ]);
  });

  it('is one of several in a variable, apart by commas', () => {
    const environment = { BOARDWALK_FLEET_MOUNT: '/a:/a, /b:/b:rw' };
    expect(resolveSettings(['mount'], { flags: {}, environment }).mount).toHaveLength(2);
  });

  it.each([
    [['/data'], 'must be SRC:DST, SRC:DST:ro or SRC:DST:rw'],
    [['/a:/b:rx'], 'must be SRC:DST, SRC:DST:ro or SRC:DST:rw'],
    [['/a:/b:ro:z'], 'must be SRC:DST, SRC:DST:ro or SRC:DST:rw'],
    [[':/b'], 'must be SRC:DST, SRC:DST:ro or SRC:DST:rw'],
    [['data:/data'], 'must have absolute paths'],
    [['/data:data'], 'must have absolute paths'],
    [['/a:/'], 'must not mount at /:'],
    [['/a:/workspace/'], 'must not mount at /workspace:'],
    [['/a:/x/../tmp'], 'must not mount at /tmp:'],
    [['/a:/run/boardwalk-fleet'], 'must not mount at /run/boardwalk-fleet:'],
    [['/a:/opt/boardwalk-fleet/in'], 'must not mount at /opt/boardwalk-fleet/in:'],
    [['/a:/b', '/c:/b/'], 'must not mount twice at /b'],
  ])('given as %j is refused in words', (given, words) => {
    expect(() => mountsOf(...given)).toThrow(words);
  });
});

describe('a size', () => {
  it.each([
    ['512m', 536_870_912],
    ['2g', 2_147_483_648],
    ['1.5G', 1_610_612_736],
    ['64k', 65_536],
    ['100b', 100],
    ['100', 100],
    ['1t', null],
    ['-1m', null],
    ['', null],
  ])('%j is %j bytes', (text, bytes) => {
    expect(parseSizeText(text)).toBe(bytes);
  });

  it.each([0, 1, 1_000, 1_024, 1_536, 134_217_728, 1_610_612_736, 2_147_483_648])(
    'of %i bytes is written so that it reads back the same',
    (bytes) => {
      expect(parseSizeText(sizeText(bytes))).toBe(bytes);
    },
  );
});
