// The compose file as Compose and as our own program read it: no key that the specification doesn't know, no flag or
// variable that is no setting, no secret where others see it. That its Redis works is in test/integration/infra.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Ajv, type AnySchemaObject } from 'ajv';
import { afterAll, describe, expect, it } from 'vitest';
import { start } from '../../../src/cli/commands.js';
import { missingOf } from '../../../src/cli/commands/start.js';
import { parseDurationText } from '../../../src/cli/durations.js';
import { CommandLine } from '../../../src/cli/program.js';
import { sandboxChoice } from '../../../src/cli/sandboxes.js';
import { SETTINGS, type SettingOf, type Settings } from '../../../src/cli/settings.js';
import {
  environmentOf,
  rawCompose,
  readCompose,
  variablesOf,
  type ComposeService,
  type Environment,
} from '../../support/composeFile.js';
import { parseDockerfile } from '../../support/dockerfile.js';
import { read, REPOSITORY } from '../../support/sourceTree.js';

const FILE = 'infra/compose.yaml';
/** What an operator can't leave out. */
const LEAST: Environment = { BOARDWALK_FLEET_URL: 'https://cp.example.com', ENGINE_GROUP: '998' };
const compose = readCompose(FILE, LEAST);
const { redis, ...ours } = compose.services;
const ROLES = Object.entries(ours);

const secretsDir = mkdtempSync(join(tmpdir(), 'bwf-secrets-'));
afterAll(() => rmSync(secretsDir, { recursive: true, force: true }));

describe('the compose file', () => {
  it('is what the compose specification allows', () => {
    const validate = new Ajv({ strict: false, allErrors: true }).compile(composeSpecification());
    expect({ isValid: validate(rawCompose(FILE)), errors: validate.errors }).toEqual({
      isValid: true,
      errors: null,
    });
    expect(validate({ services: { poller: { image: 'x', comand: [] } } })).toBe(false);
  });

  it('says what is missing where the control plane or the group of the engine is not given', () => {
    for (const name of Object.keys(LEAST))
      expect(() => readCompose(FILE, { ...LEAST, [name]: '' })).toThrow(`${name}: the `);
  });

  it('has a line in .env.example for each variable that it takes', () => {
    const named = [...read('infra/.env.example').matchAll(/^#?([A-Z_]+)=/gm)].map(([, name = '']) => name);
    expect(named.sort()).toEqual(variablesOf(FILE));
  });

  it('names files that are there or that an operator makes in a directory which git ignores', () => {
    for (const { build } of Object.values(compose.services)) {
      if (build === undefined) continue;
      expect(join(dirname(FILE), build.context)).toMatch(/^\.\/?$/);
      expect(existsSync(join(REPOSITORY, build.dockerfile))).toBe(true);
    }
    expect(read('infra/.gitignore').split('\n')).toContain('secrets/');
    for (const { file } of Object.values(compose.secrets)) expect(file).toMatch(/^\.\/secrets\//);
  });

  it('declares every network, volume and secret that a service names', () => {
    for (const service of Object.values(compose.services)) {
      const volumes = service.volumes.filter(({ type }) => type === 'volume').map(({ source }) => source);
      expect(Object.keys(compose.networks)).toEqual(expect.arrayContaining(service.networks));
      expect(Object.keys(compose.secrets)).toEqual(expect.arrayContaining(service.secrets));
      expect(Object.keys(compose.volumes)).toEqual(expect.arrayContaining(volumes));
    }
  });

  it('gives every service an init, no capability, no new privilege and nothing to write to but its volumes', () => {
    for (const service of Object.values(compose.services)) {
      expect(service).toMatchObject({ init: true, read_only: true, cap_drop: ['ALL'] });
      expect(service.security_opt).toEqual(['no-new-privileges:true']);
      expect(service).not.toHaveProperty('privileged');
      expect(service).not.toHaveProperty('cap_add');
      expect(service).not.toHaveProperty('ports');
      // A name can be had once: executors could not be scaled.
      expect(service).not.toHaveProperty('container_name');
    }
  });

  it('keeps Redis in a network without a way out, and nobody but the fleet in it', () => {
    expect(redis?.networks).toEqual(['redis']);
    expect(compose.networks['redis']).toEqual({ internal: true });
  });
});

describe.each(ROLES)('the service %s', (role, service) => {
  it('is a command that our program takes, with no flag and no variable that it does not know', async () => {
    const values = await settingsOf(service, LEAST);
    expect(values.roles).toEqual([role]);
    expect(missingOf(values)).toEqual([]);
    expect(() => sandboxChoice(values)).not.toThrow();
  });

  it('leaves what an operator does not say to the defaults of the program', async () => {
    const values = await settingsOf(service, LEAST);
    for (const name of ['pool', 'fleet', 'slots', 'image', 'network', 'memory', 'cpus', 'pids'] as const)
      expect({ [name]: values[name] }).toEqual({ [name]: SETTINGS[name].fallback });
  });

  it('reads its secrets from files, which are the ones that it is given', async () => {
    const values = await settingsOf(service, LEAST);
    expect(values.redisPassword).toBe('text of redis_password');
    expect(values.fleetKeyFile).toBe('/run/secrets/fleet_key');
    const paths = Object.values(environmentOf(service, LEAST)).filter((value) => value.startsWith('/run/'));
    expect(paths.sort()).toEqual(service.secrets.map((name) => `/run/secrets/${name}`).sort());
    expect(values.redisUrl).toBe('redis://redis:6379');
  });

  it('has longer to stop than a drain takes', async () => {
    const { drainTimeout } = await settingsOf(service, LEAST);
    expect(parseDurationText(service.stop_grace_period)).toBeGreaterThanOrEqual(drainTimeout + 60_000);
  });

  it('starts when Redis answers', () => {
    expect(service.depends_on['redis']).toEqual({ condition: 'service_healthy' });
  });
});

describe('a stop of all', () => {
  it('goes from the poller to the executors, the shipper and Redis, against the order of the start', () => {
    const dependsOn = (name: string): readonly string[] => Object.keys(ours[name]?.depends_on ?? {});
    expect(dependsOn('poller')).toContain('executor');
    expect(dependsOn('executor')).toContain('shipper');
  });
});

describe('the executor', () => {
  const { executor, ...others } = ours;

  it('alone has the socket of the engine', () => {
    const hasSocket = (service: ComposeService | undefined): boolean =>
      service?.volumes.some(({ target }) => target.endsWith('docker.sock')) ?? false;
    expect(hasSocket(executor)).toBe(true);
    expect(Object.values({ ...others, redis }).filter(hasSocket)).toEqual([]);
  });

  it.each([undefined, '/srv/fleet'])(
    'finds its work directory where the engine finds it (%s)',
    async (dir) => {
      const around = dir === undefined ? LEAST : { ...LEAST, BOARDWALK_FLEET_WORK_DIR: dir };
      const service = readCompose(FILE, around).services['executor'];
      if (service === undefined) throw new Error('There is no executor.');
      const { workDir = '' } = await settingsOf(service, around);
      expect(workDir).toBe(dir ?? '/var/lib/boardwalk-fleet');
      expect(service.volumes).toContainEqual({
        type: 'bind',
        source: workDir,
        target: workDir,
        bind: { create_host_path: false },
      });
    },
  );

  it('gets what an operator says about sandboxes', async () => {
    const around = { ...LEAST, BOARDWALK_FLEET_SLOTS: '9', BOARDWALK_FLEET_IMAGE: 'boardwalk-fleet-run' };
    const service = readCompose(FILE, around).services['executor'];
    if (service === undefined) throw new Error('There is no executor.');
    expect(await settingsOf(service, around)).toMatchObject({ slots: 9, image: 'boardwalk-fleet-run' });
  });

  it('runs as the user of the image unless told otherwise', () => {
    const user = parseDockerfile(read('infra/images/fleet/Dockerfile'))
      .stages.at(-1)
      ?.instructions.find(({ name }) => name === 'USER');
    expect(executor?.user).toBe(user?.rest);
  });
});

describe('the poller', () => {
  it('keeps its identity on a volume, where the image has a directory of its user', async () => {
    const { poller } = ours;
    if (poller === undefined) throw new Error('There is no poller.');
    const { identityDir } = await settingsOf(poller, LEAST);
    expect(poller.volumes).toContainEqual(
      expect.objectContaining({ type: 'volume', source: 'identity', target: identityDir }),
    );
    const copied = parseDockerfile(read('infra/images/fleet/Dockerfile'))
      .stages.at(-1)
      ?.instructions.find(({ flags }) => flags['chown'] === '1000:1000');
    expect(copied?.words.at(-1)).toBe(dirname(identityDir));
  });
});

/** The schema as the project of the specification publishes it. */
function composeSpecification(): AnySchemaObject {
  const dclint = dirname(createRequire(import.meta.url).resolve('dclint/package.json'));
  const text = readFileSync(join(dclint, 'schemas/compose.schema.json'), 'utf8');
  const schema = JSON.parse(text) as AnySchemaObject;
  // Draft 7, but under an address with https that no validator knows.
  expect(schema['$schema']).toBe('https://json-schema.org/draft-07/schema');
  return { ...schema, $schema: 'http://json-schema.org/draft-07/schema#' };
}

/** What our own command line makes of a service's command and environment. */
async function settingsOf(
  service: ComposeService,
  around: Environment,
): Promise<Settings<SettingOf<'start'>>> {
  const environment = Object.fromEntries(
    Object.entries(environmentOf(service, around)).map(([name, value]) => [name, secretHere(name, value)]),
  );
  let taken: Settings<SettingOf<'start'>> | undefined;
  const commandLine = new CommandLine('0.0.0', {
    environment,
    stdout: process.stdout,
    stderr: process.stderr,
  });
  const exitCode = await commandLine
    .add({
      ...start,
      load: () =>
        Promise.resolve((values) => {
          taken = values;
          return Promise.resolve(0);
        }),
    })
    .run(service.command);
  if (taken === undefined) throw new Error(`The command line ends with ${exitCode}.`);
  return taken;
}

/** A secret that is read at once must be a file here too. */
function secretHere(name: string, value: string): string {
  const [, secret] = /^\/run\/secrets\/(\w+)$/.exec(value) ?? [];
  if (secret === undefined || !/_(?:PASSWORD|TOKEN)_FILE$/.test(name)) return value;
  const path = join(secretsDir, secret);
  writeFileSync(path, `text of ${secret}\n`);
  return path;
}
