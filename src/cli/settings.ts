// Every setting of the program, once: its flag, its environment variable, its type, its default and its words.
// Commands say which of them they take; nothing else reads the environment or parses a value, so a wrong setting is
// refused in one place, with its name, the value and what is allowed (design section 11).

import { readFileSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { OperatorError } from '../contract/operatorError.js';
import { parseDurationText } from './durations.js';

export const ENVIRONMENT_PREFIX = 'BOARDWALK_FLEET_';
export const ROLES = ['poller', 'executor', 'shipper'] as const;
export type Role = (typeof ROLES)[number];

/** What one setting is. `placeholder` absent: a switch. */
interface Setting<T> {
  readonly placeholder?: string;
  readonly help: string;
  /** From the text of a flag or an environment variable. */
  readonly schema: z.ZodType<T, string | boolean>;
  readonly fallback?: T;
  /** Words for the default where the value alone says little. */
  readonly fallbackHelp?: string;
  /** Never shown, and may come from a file named by the variable with `_FILE`. Not a flag: argv is public. */
  readonly secret?: boolean;
}

const text = z.string().min(1, 'must not be empty');
const flag = z.union(
  [
    z.boolean(),
    z.enum(['1', 'true', 'yes', '0', 'false', 'no']).transform((word) => ['1', 'true', 'yes'].includes(word)),
  ],
  'must be true or false',
);
const list = text.transform((value) =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);
const count = (least: number, most: number): z.ZodType<number, string> =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be a whole number from ${least} to ${most}`);
const httpUrl = text.refine(
  (value) => /^https?:\/\//.test(value) && URL.canParse(value),
  'must be an http:// or https:// address',
);
const redisUrl = text.refine(
  (value) => (/^(redis|rediss):\/\//.test(value) ? URL.canParse(value) : value.startsWith('unix:///')),
  'must be redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH',
);
const duration = text.transform((value, context) => {
  const ms = parseDurationText(value);
  if (ms !== null) return ms;
  context.addIssue({ code: 'custom', message: 'must be a time such as 22s, 5m or 500ms' });
  return z.NEVER;
});
const roles = list.pipe(
  z.array(z.enum(ROLES, `must be some of ${ROLES.join(', ')}`)).min(1, 'must name a role'),
);
const json = text.transform((value, context): unknown => {
  try {
    return JSON.parse(value) as unknown;
  } catch (error) {
    context.addIssue({
      code: 'custom',
      message: `must be JSON (${error instanceof Error ? error.message : 'unreadable'})`,
    });
    return z.NEVER;
  }
});

function optional<T>(definition: Setting<T>): Setting<T> {
  return definition;
}

function defaulted<T>(
  definition: Setting<T> & { readonly fallback: T },
): Setting<T> & { readonly fallback: T } {
  return definition;
}

/** By camelCase key; the flag is its kebab-case, the variable its SCREAMING_SNAKE_CASE behind the prefix. */
export const SETTINGS = {
  url: optional({ placeholder: 'URL', help: 'address of the control plane', schema: httpUrl }),
  pool: defaulted({
    placeholder: 'NAME',
    help: 'pool that this machine serves',
    schema: text,
    fallback: 'default',
  }),
  fleet: defaulted({
    placeholder: 'NAME',
    help: 'name of the fleet; all processes with this name and Redis belong together',
    schema: text.regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 . _ -'),
    fallback: 'default',
  }),
  roles: defaulted<readonly Role[]>({
    placeholder: 'LIST',
    help: `roles of this process: ${ROLES.join(',')}`,
    schema: roles,
    fallback: ROLES,
  }),
  slots: defaulted({
    placeholder: 'N',
    help: 'runs that this executor executes at a time',
    schema: count(1, 1_000),
    fallback: 4,
  }),
  host: defaulted<boolean>({
    help: 'run programs as processes of this machine, without isolation',
    schema: flag,
    fallback: false,
  }),
  redisUrl: optional({
    placeholder: 'URL',
    help: 'Redis of the fleet',
    schema: redisUrl,
    fallbackHelp: 'an embedded Redis, all roles in this process',
  }),
  redisUsername: optional({ placeholder: 'NAME', help: 'user name at Redis', schema: text }),
  redisPassword: optional({ help: 'password at Redis', schema: text, secret: true }),
  redisTlsCa: optional({
    placeholder: 'FILE',
    help: 'certificate authority that Redis is trusted by (rediss://)',
    schema: text,
  }),
  fleetKeyFile: optional({
    placeholder: 'FILE',
    help: 'key that seals credentials in Redis (see: key generate)',
    schema: text,
  }),
  workDir: optional({
    placeholder: 'DIR',
    help: 'directory of runs and of the embedded Redis',
    schema: text,
    fallbackHelp: '<identity-dir>/work',
  }),
  identityDir: defaulted({
    placeholder: 'DIR',
    help: 'directory of runner identities',
    schema: text,
    fallback: join(homedir(), '.boardwalk/runner'),
    fallbackHelp: '~/.boardwalk/runner',
  }),
  runnerId: optional({
    placeholder: 'ID',
    help: 'runner identity without a file, with the runner token in the environment',
    schema: text,
  }),
  runnerToken: optional({ help: 'token of --runner-id', schema: text, secret: true }),
  node: optional({
    placeholder: 'PATH',
    help: 'Node.js that executes programs (they are built for 24)',
    schema: text,
    fallbackHelp: 'the one that runs this program',
  }),
  once: defaulted<boolean>({
    help: 'execute one run, then end with its exit code',
    schema: flag,
    fallback: false,
  }),
  drainTimeout: defaulted({
    placeholder: 'TIME',
    help: 'how long running attempts may go on after the first signal',
    schema: duration,
    fallback: 600_000,
    fallbackHelp: '10m',
  }),
  shipperConcurrency: defaulted({
    placeholder: 'N',
    help: 'lanes that a shipper drains at a time',
    schema: count(1, 10_000),
    fallback: 32,
  }),
  verbose: defaulted<boolean>({ help: 'log at debug level', schema: flag, fallback: false }),
  debug: defaulted<boolean>({
    help: 'as --verbose, and debug output of run processes too',
    schema: flag,
    fallback: false,
  }),
  token: optional({ placeholder: 'TOKEN', help: 'registration token, used once', schema: text }),
  name: defaulted({
    placeholder: 'NAME',
    help: 'display name of the runner',
    schema: text.max(120, 'must be at most 120 characters'),
    fallback: hostname().slice(0, 120),
    fallbackHelp: 'the host name',
  }),
  labels: defaulted<readonly string[]>({
    placeholder: 'A,B',
    help: 'labels of the runner',
    schema: list.pipe(z.array(z.string().max(120)).max(32, 'must be at most 32 labels')),
    fallback: [],
    fallbackHelp: 'none',
  }),
  out: optional({
    placeholder: 'FILE',
    help: 'file to write, readable by its owner only',
    schema: text,
    fallbackHelp: 'standard output',
  }),
  port: defaulted({
    placeholder: 'P',
    help: 'port on 127.0.0.1',
    schema: count(0, 65_535),
    fallback: 0,
    fallbackHelp: 'a free one',
  }),
  pollHold: defaulted({
    placeholder: 'TIME',
    help: 'how long an empty poll is held',
    schema: duration,
    fallback: 22_000,
    fallbackHelp: '22s',
  }),
  lease: defaulted({
    placeholder: 'TIME',
    help: 'length of a lease',
    schema: duration,
    fallback: 300_000,
    fallbackHelp: '300s',
  }),
  json: defaulted<boolean>({
    help: 'stored rows and the result as JSON lines on standard output',
    schema: flag,
    fallback: false,
  }),
  input: optional<unknown>({ placeholder: 'JSON', help: 'input of the run', schema: json }),
  script: optional({ placeholder: 'FILE', help: 'script of the model (JSON)', schema: text }),
  runs: defaulted({
    placeholder: 'N',
    help: 'how many runs to start',
    schema: count(1, 10_000),
    fallback: 1,
  }),
} as const;

export type SettingName = keyof typeof SETTINGS;

/** What every command that meets others in Redis takes. */
export const REDIS_SETTINGS = [
  'fleet',
  'redisUrl',
  'redisUsername',
  'redisPassword',
  'redisTlsCa',
  'fleetKeyFile',
] as const satisfies readonly SettingName[];

/** Which settings a command takes. */
export const COMMAND_SETTINGS = {
  start: [
    'url',
    'pool',
    'roles',
    'slots',
    ...REDIS_SETTINGS,
    'host',
    'workDir',
    'identityDir',
    'runnerId',
    'runnerToken',
    'node',
    'once',
    'drainTimeout',
    'shipperConcurrency',
    'verbose',
    'debug',
  ],
  register: ['url', 'token', 'name', 'labels', 'identityDir'],
  dev: ['host', 'json', 'input', 'script', 'runs', 'slots', 'node', 'verbose', 'debug'],
  controlPlane: ['port', 'pool', 'pollHold', 'lease'],
  keyGenerate: ['out'],
} as const satisfies Readonly<Record<string, readonly SettingName[]>>;

/** Name of a setting that a command takes. */
export type SettingOf<Command extends keyof typeof COMMAND_SETTINGS> =
  (typeof COMMAND_SETTINGS)[Command][number];

export type Settings<Name extends SettingName> = {
  readonly [Key in Name]: (typeof SETTINGS)[Key] extends Setting<infer T>
    ? (typeof SETTINGS)[Key] extends { readonly fallback: unknown }
      ? T
      : T | undefined
    : never;
};

export function flagOf(name: SettingName): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

export function variableOf(name: SettingName): string {
  return ENVIRONMENT_PREFIX + name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

/** What a person gave, before it is checked: flags by setting name (commander's), and the environment. */
export interface Given {
  readonly flags: Readonly<Partial<Record<string, string | boolean>>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * The values of the named settings: a flag wins over a variable, a variable over the default.
 *
 * @throws OperatorError `SETTING_INVALID`, naming the setting where it was given, the value and what is allowed.
 */
export function resolveSettings<const Name extends SettingName>(
  names: readonly Name[],
  given: Given,
): Settings<Name> {
  const values: Record<string, unknown> = {};
  for (const name of names) values[name] = resolveSetting(name, given);
  return values as Settings<Name>;
}

function resolveSetting(name: SettingName, given: Given): unknown {
  const definition: Setting<unknown> = SETTINGS[name];
  const source = find(name, definition, given);
  if (source === null) return definition.fallback;
  const parsed = definition.schema.safeParse(source.value);
  if (parsed.success) return parsed.data;
  const shown = definition.secret === true ? 'the value' : JSON.stringify(source.value);
  const why = parsed.error.issues[0]?.message ?? 'is not valid';
  throw new OperatorError('SETTING_INVALID', `${source.where}: ${shown} ${why}.`);
}

function find(
  name: SettingName,
  definition: Setting<unknown>,
  given: Given,
): { where: string; value: string | boolean } | null {
  const fromFlag = given.flags[name];
  if (fromFlag !== undefined && definition.secret !== true) return { where: flagOf(name), value: fromFlag };
  const variable = variableOf(name);
  const fromEnvironment = given.environment[variable];
  if (fromEnvironment !== undefined && fromEnvironment !== '')
    return { where: variable, value: fromEnvironment };
  const file = given.environment[`${variable}_FILE`];
  if (definition.secret !== true || file === undefined || file === '') return null;
  return { where: `${variable}_FILE`, value: readSecretFile(`${variable}_FILE`, file) };
}

function readSecretFile(where: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new OperatorError('SETTING_INVALID', `${where}: the file ${file} can't be read (${why}).`, {
      cause: error,
    });
  }
}

/** Variables with our prefix that are no setting: a typing error that would otherwise be ignored in silence. */
export function unknownVariables(environment: Given['environment']): readonly string[] {
  const known = new Set<string>();
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    known.add(variableOf(name));
    if ((SETTINGS[name] as Setting<unknown>).secret === true) known.add(`${variableOf(name)}_FILE`);
  }
  return Object.keys(environment).filter((key) => key.startsWith(ENVIRONMENT_PREFIX) && !known.has(key));
}
