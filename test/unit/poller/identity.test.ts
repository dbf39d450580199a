import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OperatorError } from '../../../src/contract/operatorError.js';
import { type Identity, identityPath, readIdentity, saveIdentity } from '../../../src/poller/identity.js';

const URL_TEXT = 'http://127.0.0.1:4810';
const IDENTITY: Identity = {
  runnerId: 'rnr_1',
  runnerToken: 'bwkr_secret',
  controlPlaneUrl: URL_TEXT,
  pool: 'lab',
  name: 'box',
  createdAtMs: 1_700_000_000_000,
};

let root: string;
let dir: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'identity-'));
  dir = join(root, 'runner');
});

afterEach(() => rm(root, { recursive: true, force: true }));

const place = (pool = 'lab'): { dir: string; controlPlaneUrl: string; pool: string } => ({
  dir,
  controlPlaneUrl: URL_TEXT,
  pool,
});

async function errorOf(promise: Promise<unknown>): Promise<OperatorError> {
  const thrown: unknown = await promise.catch((error: unknown) => error);
  if (!(thrown instanceof OperatorError)) throw new Error('expected an OperatorError');
  return thrown;
}

async function writeReference(content: unknown): Promise<void> {
  await saveIdentity(dir, IDENTITY);
  await writeFile(identityPath(place()), typeof content === 'string' ? content : JSON.stringify(content));
}

describe('a saved identity', () => {
  it('lies where the reference daemon looks for it, and reads back', async () => {
    const path = await saveIdentity(dir, IDENTITY);
    expect(path).toBe(join(dir, '127.0.0.1_4810--lab.json'));
    expect(await readIdentity(place())).toEqual(IDENTITY);
  });

  it('is indented JSON with a final newline and the fields of the protocol', async () => {
    const text = await readFile(await saveIdentity(dir, IDENTITY), 'utf8');
    expect(text).toBe(`${JSON.stringify(JSON.parse(text), null, 2)}\n`);
    expect(Object.keys(JSON.parse(text) as object)).toEqual([
      'runner_id',
      'runner_token',
      'control_plane_url',
      'pool',
      'name',
      'created_at',
    ]);
  });

  it('is readable by its owner alone, also after somebody loosened it', async () => {
    const path = await saveIdentity(dir, IDENTITY);
    await chmod(dir, 0o755);
    await chmod(path, 0o644);
    await saveIdentity(dir, IDENTITY);
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await chmod(path, 0o644);
    await readIdentity(place());
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it('leaves no draft behind', async () => {
    await saveIdentity(dir, IDENTITY);
    expect(await readdir(dir)).toEqual(['127.0.0.1_4810--lab.json']);
  });

  it('stays as it was when the new one can not be written', async () => {
    await saveIdentity(dir, IDENTITY);
    // A directory can't be where a file is, not even for root.
    const error = await errorOf(saveIdentity(join(identityPath(place()), 'deeper'), IDENTITY));
    expect(await readIdentity(place())).toEqual(IDENTITY);
    expect(error.code).toBe('IDENTITY_UNWRITABLE');
    expect(error.message + String(error.hint)).not.toContain('bwkr_secret');
  });

  it('has a file name that no pool can leave', () => {
    expect(identityPath(place('../../etc/x'))).toMatch(/^[^/]*(\/[^/]+)*\/127\.0\.0\.1_4810--[^/]+\.json$/);
    expect(identityPath(place('../../etc/x')).startsWith(`${dir}/`)).toBe(true);
  });
});

describe('an identity file of another program', () => {
  it('may have keys that we do not know', async () => {
    await writeReference({
      runner_id: 'rnr_1',
      runner_token: 't',
      control_plane_url: `${URL_TEXT}/`,
      pool: 'lab',
      org: 'acme',
      name: 'box',
      created_at: 1,
      region: 'north',
    });
    expect(await readIdentity(place())).toMatchObject({ runnerId: 'rnr_1', org: 'acme' });
  });

  it('is refused by the names of its wrong fields, not by its values', async () => {
    await writeReference({
      runner_id: 'rnr_1',
      runner_token: 'bwkr_secret',
      pool: 'lab',
      created_at: 'soon',
    });
    const error = await errorOf(readIdentity(place()));
    expect(error.code).toBe('IDENTITY_INVALID');
    expect(error.message).toContain('control_plane_url, name, created_at');
    expect(error.message).not.toContain('bwkr_secret');
    expect(error.hint).toContain('register');
  });

  it('is refused without a quote when it is not JSON', async () => {
    await writeReference('{"runner_token": "bwkr_secret"');
    const error = await errorOf(readIdentity(place()));
    expect(error.code).toBe('IDENTITY_INVALID');
    expect(error.message + String(error.cause)).not.toContain('bwkr_secret');
  });
});

describe('a machine without an identity', () => {
  it('is told how to register', async () => {
    const error = await errorOf(readIdentity(place()));
    expect(error.code).toBe('IDENTITY_MISSING');
    expect(error.message).toContain('"lab"');
    expect(error.hint).toContain(`boardwalk-fleet register --url ${URL_TEXT} --token`);
  });

  it('is told of the pools that it is registered for', async () => {
    await saveIdentity(dir, IDENTITY);
    expect((await errorOf(readIdentity(place('default')))).hint).toContain('registered for: lab');
  });

  it('is told when the address is none', async () => {
    expect((await errorOf(readIdentity({ ...place(), controlPlaneUrl: 'nowhere' }))).code).toBe(
      'CONTROL_PLANE_URL',
    );
  });
});
