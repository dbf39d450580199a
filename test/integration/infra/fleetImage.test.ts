// The steps of the fleet's image, executed without an engine and without a base image: packages, build, prune, and what
// the last stage takes from that.

import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { copyBuildContext } from '../../support/buildContext.js';
import { buildWithoutEngine, type BuiltImage } from '../../support/buildSteps.js';
import { parseDockerfile } from '../../support/dockerfile.js';
import { read } from '../../support/sourceTree.js';

/** Packages come from a registry where npm's cache doesn't have them. */
const BUILD_MS = 180_000;

let dir: string;
let image: BuiltImage;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'bwf-image-'));
  const context = join(dir, 'context');
  mkdirSync(context);
  copyBuildContext(context);
  image = buildWithoutEngine(parseDockerfile(read('infra/images/fleet/Dockerfile')), context, dir);
}, BUILD_MS);

afterAll(() => rmSync(dir, { recursive: true, force: true }));

it('starts from what its last stage takes over, with the version of the package', async () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  expect(await run('--version')).toBe(`${version}\n`);
});

it('has what a role loads, not only what help needs', async () => {
  const program = join(image.root, 'opt/boardwalk-fleet/dist/cli/roles.js');
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', `await import('${program}')`]);
  expect(existsSync(join(image.root, 'opt/boardwalk-fleet/dist/sandbox/runtime.mjs'))).toBe(true);
});

it('carries the packages that it runs on and none that it is built with', () => {
  const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<
    'dependencies' | 'devDependencies',
    Record<string, string>
  >;
  const has = (name: string): boolean =>
    existsSync(join(image.root, 'opt/boardwalk-fleet/node_modules', name));
  expect(Object.keys(dependencies).filter((name) => !has(name))).toEqual([]);
  // Types of Node.js are what the types of a package that we do need are made with.
  expect(Object.keys(devDependencies).filter((name) => has(name) && name !== '@types/node')).toEqual([]);
});

it('holds its license, and an identity directory that only its user may enter', () => {
  expect(readFileSync(join(image.root, 'opt/boardwalk-fleet/LICENSE'), 'utf8')).toContain('Apache License');
  expect(statSync(join(image.root, 'home/node/.boardwalk/runner')).mode & 0o777).toBe(0o700);
});

async function run(...args: readonly string[]): Promise<string> {
  const [, ...words] = image.entrypoint;
  return (await promisify(execFile)(process.execPath, [...words, ...args])).stdout;
}
