import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FleetProcess, HELLO, runProgram } from '../../support/localFleet.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';

describe('the command line', () => {
  let dir = '';
  let redis: TestRedis;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bwf-cli-'));
    redis = await startTestRedis();
    await writeFile(join(dir, 'bad.key'), 'no key at all\n');
  });
  afterAll(async () => {
    await redis.stop();
    await rm(dir, { recursive: true, force: true });
  });

  it('has help for itself and every command, and a version', async () => {
    for (const words of [
      [],
      ['start'],
      ['register'],
      ['dev'],
      ['control-plane'],
      ['key'],
      ['key', 'generate'],
      ['config', 'print'],
    ]) {
      const { code, stdout } = await runProgram([...words, '--help']);
      expect(code, words.join(' ')).toBe(0);
      expect(stdout).toContain('Usage: boardwalk-fleet');
    }
    expect((await runProgram(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it.each([
    ['an unknown command', ['fly'], 2, "unknown command 'fly'"],
    ['an unknown command that is asked for its help', ['fly', '--help'], 2, "unknown command 'fly'"],
    ['an unknown flag', ['start', '--slotz', '4'], 2, "unknown option '--slotz'"],
    ['a flag without its value', ['start', '--slots'], 2, '--slots'],
    ['a wrong type', ['start', '--slots', 'many'], 2, '--slots: "many" must be a whole number'],
    ['a missing flag', ['register', '--token', 'x'], 2, '--url is missing'],
    ['a missing address', ['start', '--host'], 2, '--url is missing'],
    ['a Node.js for containers', ['dev', '.', '--node', process.execPath], 2, '--node is for --host only'],
    ['nothing given at all', ['start'], 2, '--url is missing'],
    [
      'a database that is none',
      ['start', '--redis-url', 'redis://host/abc'],
      2,
      '--redis-url: the value must be',
    ],
    [
      'a variable that can not be one',
      ['dev', '.', '--env', '1=x'],
      2,
      '--env: the name before the = must be',
    ],
    [
      'a secret without a value',
      ['dev', '.', '--secret', 'hush'],
      2,
      '--secret: the value must be NAME=VALUE',
    ],
    ['single roles without Redis', ['start', '--roles', 'shipper'], 2, '--redis-url is missing'],
    [
      'no fleet key',
      ['start', '--roles', 'shipper', '--redis-url', 'redis://127.0.0.1:1'],
      2,
      'key generate',
    ],
  ])('names what is wrong for %s', async (_what, args, exitCode, words) => {
    const { code, stderr } = await runProgram(args, { HOME: dir });
    expect(stderr).toContain(words);
    expect(stderr).not.toContain('    at ');
    expect(code).toBe(exitCode);
  });

  it('names both ways out where no container engine answers', async () => {
    const { code, stderr } = await runProgram(['dev', HELLO], {
      HOME: dir,
      DOCKER_HOST: `unix://${join(dir, 'no-engine.sock')}`,
    });
    expect(stderr).toContain('No container engine answers');
    expect(stderr).toContain('DOCKER_HOST=');
    expect(stderr).toContain('--host');
    expect(stderr).not.toContain('    at ');
    expect(code).toBe(1);
  });

  it('refuses a variable with our prefix that it does not know', async () => {
    const { code, stderr } = await runProgram(['key', 'generate'], { BOARDWALK_FLEET_SLOTZ: '4' });
    expect(code).toBe(2);
    expect(stderr).toContain('BOARDWALK_FLEET_SLOTZ: no such setting');
  });

  it('makes a fleet key that only its owner can read, and never overwrites one', async () => {
    const file = join(dir, 'fleet.key');
    expect((await runProgram(['key', 'generate', '--out', file])).code).toBe(0);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const key = await readFile(file, 'utf8');
    const again = await runProgram(['key', 'generate', '--out', file]);
    expect(again.code).toBe(1);
    expect(again.stderr).toContain('exists already');
    expect(await readFile(file, 'utf8')).toBe(key);
  });

  it('says that a fleet key is unreadable, broken, or that Redis is not there', async () => {
    const shipper = ['start', '--roles', 'shipper', '--redis-url', redis.url];
    const missing = await runProgram([...shipper, '--fleet-key-file', join(dir, 'none')]);
    expect(missing).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("can't be read (ENOENT)") as string,
    });
    const broken = await runProgram([...shipper, '--fleet-key-file', join(dir, 'bad.key')]);
    expect(broken.code).toBe(2);
    expect(broken.stderr).toContain(join(dir, 'bad.key'));
    expect(broken.stderr).not.toContain('no key at all');
    await runProgram(['key', 'generate', '--out', join(dir, 'good.key')]);
    const gone = [
      'start',
      '--roles',
      'shipper',
      '--redis-url',
      'redis://127.0.0.1:1',
      '--fleet-key-file',
      join(dir, 'good.key'),
    ];
    const unreachable = await runProgram(gone);
    expect(unreachable).toMatchObject({ code: 1, stderr: expect.stringMatching(/error: .*Redis/) as string });
  });

  it('says that this machine is not registered and how to register it', async () => {
    const { code, stderr } = await runProgram([
      'start',
      '--host',
      '--url',
      'http://127.0.0.1:1',
      '--identity-dir',
      dir,
    ]);
    expect(code).toBe(1);
    expect(stderr).toContain('boardwalk-fleet register --url http://127.0.0.1:1');
  });

  it('says that a registration failed without showing the token', async () => {
    const args = [
      'register',
      '--url',
      'http://127.0.0.1:1',
      '--token',
      'bwkreg_hushhush',
      '--identity-dir',
      dir,
    ];
    const { code, stderr } = await runProgram(args);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: /);
    expect(stderr).not.toContain('bwkreg_hushhush');
  });

  it("ends 1 with the server's words when the control plane refuses the identity", async () => {
    const plane = new FleetProcess('control-plane', ['control-plane']);
    const { url } = JSON.parse(await plane.line('"url"')) as { url: string };
    const { code, stderr } = await runProgram(
      ['start', '--host', '--url', url, '--work-dir', join(dir, 'work'), '--runner-id', 'rnr_gone'],
      { BOARDWALK_FLEET_RUNNER_TOKEN: 'bwkr_unknown' },
    );
    await plane.stop();
    expect(code).toBe(1);
    expect(stderr).toContain('refuses this runner (401)');
    expect(stderr).not.toContain('bwkr_unknown');
  });
});
