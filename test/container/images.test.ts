// The fleet's image as an engine makes it of our Dockerfile, and an executor in it. The build stage needs a base with npm
// and a registry, so here its steps are executed on this machine and the engine starts from what they leave; every
// instruction of the last stage is its own. It guards against an image that is built and doesn't work: a user who may not
// write where the program does, and sandboxes that don't find what the executor in its container has made for them.

import { mkdir, mkdtemp, rm, chmod, chown, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type Docker from 'dockerode';
import { create } from 'tar';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateFleetKey } from '../../src/queue/seal.js';
import { copyBuildContext } from '../support/buildContext.js';
import { buildWithoutEngine } from '../support/buildSteps.js';
import { parseDockerfile } from '../support/dockerfile.js';
import { containersBelow, engineEnvironment, testEngine, testImage } from '../support/engine.js';
import { startTestRedis, type TestRedis } from '../support/redis.js';
import { read } from '../support/sourceTree.js';

const BUILD_MS = 240_000;
const START_MS = 60_000;
const BASE = testImage();
const IMAGE = `boardwalk-fleet-test:${process.pid}`;
const BUILD_IMAGE = `boardwalk-fleet-test-build:${process.pid}`;
/** As the compose file has it. */
const HARDENED = {
  Init: true,
  ReadonlyRootfs: true,
  CapDrop: ['ALL'],
  SecurityOpt: ['no-new-privileges'],
  NetworkMode: 'none',
} as const;

let docker: Docker;
let dir: string;

beforeAll(async () => {
  docker = await testEngine();
  dir = await mkdtemp('/tmp/bwm-');
  await buildImage();
}, BUILD_MS);

afterAll(async () => {
  for (const name of [IMAGE, BUILD_IMAGE])
    await docker
      .getImage(name)
      .remove()
      .catch(() => undefined);
  await rm(dir, { recursive: true, force: true });
});

describe('the fleet image', () => {
  it('is what its Dockerfile says', async () => {
    const { Config } = await docker.getImage(IMAGE).inspect();
    expect(Config).toMatchObject({
      User: '1000:1000',
      Entrypoint: ['node', '/opt/boardwalk-fleet/dist/cli/main.js'],
      WorkingDir: '/etc/boardwalk-fleet',
      StopSignal: 'SIGTERM',
    });
    expect(Config.Labels).toMatchObject({ 'org.opencontainers.image.version': '1.2.3-test' });
  });

  it('says its version without network, without a capability and with nothing to write to', async () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    expect(await run(['--version'], HARDENED)).toEqual({ exitCode: 0, output: `${version}\r\n` });
  });

  it('gives a new volume to its user, and nobody else may enter it', async () => {
    const name = `bwf-identity-${process.pid}`;
    await docker.createVolume({ Name: name });
    try {
      const Binds = [`${name}:/home/node/.boardwalk/runner`];
      const key = '/home/node/.boardwalk/runner/key';
      const made = await run(['key', 'generate', '--out', key], { ...HARDENED, Binds });
      expect(made).toMatchObject({ exitCode: 0 });
      const look =
        "const s = require('fs').statSync(process.argv[1]); process.stdout.write(s.uid + ' ' + (s.mode & 0o777).toString(8))";
      const looked = await run(['-e', look, '/home/node/.boardwalk/runner'], { ...HARDENED, Binds }, [
        'node',
      ]);
      expect(looked.output.trim()).toBe('1000 700');
    } finally {
      await docker.getVolume(name).remove();
    }
  });
});

describe('an executor in the fleet image', () => {
  let redis: TestRedis;
  let executor: Docker.Container | undefined;
  // Whoever isn't root can give no directory away.
  const uid = process.getuid?.() === 0 ? 1_000 : (process.getuid?.() ?? 1_000);
  const gid = process.getgid?.() === 0 ? 1_000 : (process.getgid?.() ?? 1_000);

  beforeAll(async () => {
    redis = await startTestRedis();
    await chmod(join(redis.socketPath, '..'), 0o711);
    await chmod(redis.socketPath, 0o777);
  });

  afterAll(async () => {
    await executor?.remove({ force: true });
    await redis.stop();
  });

  it('starts sandboxes beside itself, and ends in order', async () => {
    const workDir = join(dir, 'work');
    const socket = engineSocket();
    const keyFile = join(dir, 'fleet.key');
    await mkdir(workDir, { mode: 0o700 });
    await writeFile(keyFile, `${generateFleetKey()}\n`, { mode: 0o600 });
    for (const path of [workDir, keyFile]) await chown(path, uid, gid);
    executor = await docker.createContainer({
      Image: IMAGE,
      Cmd: ['start', '--roles', 'executor', '--network', 'none', '--image', BASE, '--memory', '256m'],
      User: `${uid}:${gid}`,
      Env: [
        `BOARDWALK_FLEET_FLEET=image-${process.pid}`,
        `BOARDWALK_FLEET_REDIS_URL=${redis.url}`,
        'BOARDWALK_FLEET_FLEET_KEY_FILE=/run/secrets/fleet_key',
        `BOARDWALK_FLEET_WORK_DIR=${workDir}`,
        'DOCKER_HOST=unix:///var/run/docker.sock',
      ],
      HostConfig: {
        ...HARDENED,
        GroupAdd: [String((await stat(socket)).gid)],
        Tmpfs: { '/tmp': '' },
        Binds: [
          `${socket}:/var/run/docker.sock`,
          `${workDir}:${workDir}`,
          `${redis.socketPath}:${redis.socketPath}`,
          `${keyFile}:/run/secrets/fleet_key:ro`,
        ],
      },
    });
    await executor.start();
    // A first sandbox has to come up and reach the executor before this is said.
    await untilSaid(executor, '"executor ready"');
    const ended = executor.wait() as Promise<{ readonly StatusCode: number }>;
    await executor.kill({ signal: 'SIGTERM' });
    expect(await ended).toMatchObject({ StatusCode: 0 });
    expect(await containersBelow(docker, dir)).toEqual([]);
  });
});

/** The one thing that can't be mounted is an engine elsewhere. */
function engineSocket(): string {
  const { DOCKER_HOST } = engineEnvironment();
  if (!DOCKER_HOST.startsWith('unix://')) throw new Error(`DOCKER_HOST is no socket: ${DOCKER_HOST}`);
  return DOCKER_HOST.slice('unix://'.length);
}

async function buildImage(): Promise<void> {
  const text = read('infra/images/fleet/Dockerfile');
  const context = join(dir, 'context');
  await mkdir(context);
  copyBuildContext(context);
  const { rootOf } = buildWithoutEngine(parseDockerfile(text), context, join(dir, 'stages'));
  const [repo = '', tag = ''] = BUILD_IMAGE.split(':');
  await done(await docker.importImage(await archiveOf(rootOf('build')), { repo, tag }));
  const lastStage = text.slice(text.lastIndexOf('\nFROM ') + 1);
  await writeFile(join(context, 'Dockerfile'), `ARG BASE\nFROM ${BUILD_IMAGE} AS build\n${lastStage}`);
  const buildargs = { BASE, VERSION: '1.2.3-test' };
  await done(await docker.buildImage(await archiveOf(context), { t: IMAGE, buildargs, forcerm: true }));
}

async function archiveOf(cwd: string): Promise<string> {
  const file = `${cwd}.tar`;
  await create({ cwd, file, portable: true }, ['.']);
  return file;
}

async function done(answer: NodeJS.ReadableStream): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(answer, (error) => (error === null ? resolve() : reject(error)));
  });
}

async function run(
  Cmd: readonly string[],
  HostConfig: Docker.HostConfig,
  Entrypoint?: readonly string[],
): Promise<{ readonly exitCode: number; readonly output: string }> {
  const container = await docker.createContainer({
    Image: IMAGE,
    Cmd: [...Cmd],
    ...(Entrypoint === undefined ? {} : { Entrypoint: [...Entrypoint] }),
    Tty: true,
    HostConfig,
  });
  try {
    await container.start();
    const { StatusCode } = (await container.wait()) as { readonly StatusCode: number };
    const output = await container.logs({ stdout: true, stderr: true });
    return { exitCode: StatusCode, output: output.toString('utf8') };
  } finally {
    await container.remove({ force: true });
  }
}

/** @throws Error with all it said, when it ends or stays silent */
async function untilSaid(container: Docker.Container, words: string): Promise<void> {
  const until = performance.now() + START_MS;
  for (;;) {
    const said = (await container.logs({ stdout: true, stderr: true })).toString('utf8');
    if (said.includes(words)) return;
    const { State } = await container.inspect();
    if (!State.Running || performance.now() > until)
      throw new Error(`The executor did not say ${words}: ${said}`);
    await pause(100);
  }
}
