// What can be seen of the images without building them. That their steps work is in test/integration/infra, that an
// engine makes of them what they say in test/container.

import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { SETTINGS } from '../../../src/cli/settings.js';
import { buildContext, ignoredBy } from '../../support/buildContext.js';
import { finalStage, lastOf, parseDockerfile } from '../../support/dockerfile.js';
import { read } from '../../support/sourceTree.js';

const FLEET = parseDockerfile(read('infra/images/fleet/Dockerfile'));
const RUN = parseDockerfile(read('infra/images/run/Dockerfile'));
const IMAGES = [
  { name: 'fleet', dockerfile: FLEET, context: buildContext() },
  // Built from its own folder, from which it takes nothing.
  { name: 'run', dockerfile: RUN, context: [] },
];

describe.each(IMAGES)('the Dockerfile of the $name image', ({ dockerfile, context }) => {
  const instructions = dockerfile.stages.flatMap((stage) => stage.instructions);

  it('is built on a tag of Node.js 24 that a build can replace', () => {
    expect(dockerfile.args).toEqual({ BASE: SETTINGS.image.fallback });
    for (const { base } of dockerfile.stages) expect(base).toBe(SETTINGS.image.fallback);
  });

  it('copies only what the build context has', () => {
    const sources = instructions
      .filter(({ name, flags }) => name === 'COPY' && flags['from'] === undefined)
      .flatMap(({ words }) => words.slice(0, -1));
    const missing = sources.filter(
      (source) => !context.some((path) => path === source || path.startsWith(`${source}/`)),
    );
    expect(missing).toEqual([]);
  });

  it('copies only from stages that stand before', () => {
    dockerfile.stages.forEach((stage, index) => {
      const earlier = dockerfile.stages.slice(0, index).map(({ name }) => name);
      const named = stage.instructions.flatMap(({ flags }) => flags['from'] ?? []);
      expect(named.filter((name) => !earlier.includes(name))).toEqual([]);
    });
  });

  it('has commands that a shell can read', () => {
    for (const { rest } of instructions.filter(({ name }) => name === 'RUN')) {
      const { status, stderr } = spawnSync('sh', ['-n', '-c', rest], { encoding: 'utf8' });
      expect({ rest, status, stderr }).toEqual({ rest, status: 0, stderr: '' });
    }
  });

  it('is no root, and says as a number who it is', () => {
    expect(lastOf(finalStage(dockerfile), 'USER')?.rest).toBe('1000:1000');
  });

  it('says what it is', () => {
    const labels = lastOf(finalStage(dockerfile), 'LABEL')?.rest ?? '';
    for (const name of ['title', 'description', 'licenses', 'version', 'revision'])
      expect(labels).toContain(`org.opencontainers.image.${name}=`);
  });
});

describe('the fleet image', () => {
  const last = finalStage(FLEET);

  it('executes nothing in its last stage, so that any base with Node.js will do', () => {
    expect(lastOf(last, 'RUN')).toBeUndefined();
  });

  it('starts the program without a shell in between, which would keep signals from it', () => {
    expect(last.instructions.filter(({ name }) => name === 'ENTRYPOINT').map(({ rest }) => rest)).toEqual([
      '["node", "/opt/boardwalk-fleet/dist/cli/main.js"]',
    ]);
    expect(lastOf(last, 'STOPSIGNAL')?.rest).toBe('SIGTERM');
  });
});

describe('the build context', () => {
  it('holds what the build needs and nothing of tests, git, secrets or this machine', () => {
    const folders = new Set(buildContext().map((path) => path.replace(/\/.*/, '')));
    expect([...folders].sort()).toEqual([
      'LICENSE',
      'package-lock.json',
      'package.json',
      'scripts',
      'src',
      'tsconfig.build.json',
      'tsconfig.json',
    ]);
  });

  it('is read by the rules of .dockerignore', () => {
    const isIgnored = ignoredBy('# all\n*\n!src\nsrc/**/*.log\n!/docs/\n');
    expect(['a', 'a/b', '.git/config', 'src/x/y.log', 'srcs'].filter((path) => !isIgnored(path))).toEqual([]);
    expect(['src', 'src/a.ts', 'src/a/b.ts', 'docs/a.md'].filter(isIgnored)).toEqual([]);
  });
});
