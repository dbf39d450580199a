// Every setting of the program, once: its flag, its environment variable, its type, its default and its words.
// Commands say which of them they take; how a value is found and refused is in `givenSettings` (design section 11).

import { hostname } from 'node:os';
import { z } from 'zod';
import { defaultIdentityDir } from '../poller/identity.js';
import { durationText } from './durations.js';
import { SANDBOX_SETTINGS } from './sandboxSettings.js';
import { defaulted, optional, type Setting } from './setting.js';
import {
  count,
  duration,
  durationFrom,
  flag,
  fleetName,
  httpUrl,
  json,
  list,
  redisUrl,
  rolesOf,
  text,
} from './settingValues.js';

export const ENVIRONMENT_PREFIX = 'BOARDWALK_FLEET_';
export const ROLES = ['poller', 'executor', 'shipper'] as const;
export type Role = (typeof ROLES)[number];

/** By camelCase key; flag and key of the file are its kebab-case, the variable its SCREAMING_SNAKE_CASE behind the prefix. */
export const SETTINGS = {
  config: optional({
    placeholder: 'FILE',
    help: 'file of settings',
    schema: text,
    oneShot: true,
    fallbackHelp: 'boardwalk-fleet.yaml, if it is there',
  }),
  url: optional({ placeholder: 'URL', help: 'address of the control plane', schema: httpUrl, veiled: true }),
  pool: defaulted({
    placeholder: 'NAME',
    help: 'pool that this machine serves',
    schema: text,
    fallback: 'default',
  }),
  fleet: defaulted({
    placeholder: 'NAME',
    help: 'name of the fleet; all processes with this name and Redis belong together',
    schema: fleetName,
    fallback: 'default',
  }),
  roles: defaulted<readonly Role[]>({
    placeholder: 'LIST',
    help: `roles of this process: ${ROLES.join(',')}`,
    schema: rolesOf(ROLES),
    fallback: ROLES,
  }),
  slots: defaulted({
    placeholder: 'N',
    help: 'runs that this executor executes at a time',
    schema: count(1, 1_000),
    fallback: 4,
  }),
  ...SANDBOX_SETTINGS,
  redisUrl: optional({
    placeholder: 'URL',
    help: 'Redis of the fleet',
    schema: redisUrl,
    veiled: true,
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
    fallback: defaultIdentityDir(),
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
    oneShot: true,
  }),
  drainTimeout: defaulted({
    placeholder: 'TIME',
    help: 'how long running attempts may go on after the first signal',
    schema: duration,
    fallback: 600_000,
    fallbackHelp: '10m',
    written: durationText,
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
  token: optional({
    placeholder: 'TOKEN',
    help: 'registration token, used once',
    schema: text,
    veiled: true,
    oneShot: true,
  }),
  force: defaulted<boolean>({
    help: 'replace an identity that this machine has already',
    schema: flag,
    fallback: false,
    oneShot: true,
  }),
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
    oneShot: true,
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
    written: durationText,
  }),
  lease: defaulted({
    placeholder: 'TIME',
    help: 'length of a lease',
    schema: durationFrom(1_000),
    fallback: 300_000,
    fallbackHelp: '300s',
    written: durationText,
  }),
  json: defaulted<boolean>({
    help: 'JSON on standard output',
    schema: flag,
    fallback: false,
    oneShot: true,
  }),
  input: optional<unknown>({ placeholder: 'JSON', help: 'input of the run', schema: json, oneShot: true }),
  script: optional({ placeholder: 'FILE', help: 'script of the model (JSON)', schema: text, oneShot: true }),
  runs: defaulted({
    placeholder: 'N',
    help: 'how many runs to start; of more than one you see the end only',
    schema: count(1, 10_000),
    fallback: 1,
    oneShot: true,
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

const OF_SANDBOXES = [
  'sandbox',
  'host',
  'image',
  'network',
  'mount',
  'memory',
  'cpus',
  'pids',
  'logSize',
  'sandboxUser',
] as const satisfies readonly (keyof typeof SANDBOX_SETTINGS)[];

const OF_START = [
  'url',
  'pool',
  'roles',
  'slots',
  ...REDIS_SETTINGS,
  ...OF_SANDBOXES,
  'workDir',
  'identityDir',
  'runnerId',
  'runnerToken',
  'node',
  'drainTimeout',
  'shipperConcurrency',
  'verbose',
  'debug',
] as const satisfies readonly SettingName[];

/** Which settings a command takes. */
export const COMMAND_SETTINGS = {
  start: [...OF_START, 'once'],
  register: ['url', 'token', 'name', 'labels', 'identityDir', 'force'],
  dev: ['json', 'input', 'script', 'runs', 'slots', ...OF_SANDBOXES, 'node', 'verbose', 'debug'],
  controlPlane: ['port', 'pool', 'pollHold', 'lease'],
  keyGenerate: ['out'],
  configPrint: [...OF_START, 'once', 'name', 'labels', 'port', 'pollHold', 'lease', 'json'],
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

/** What may stand in the file, in the order in which it is explained. */
export const FILE_SETTINGS: readonly SettingName[] = (Object.keys(SETTINGS) as SettingName[]).filter(
  (name) => (SETTINGS[name] as { readonly oneShot?: boolean }).oneShot !== true,
);

/** The name in the file. */
export function keyOf(name: SettingName): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export function flagOf(name: SettingName): string {
  return `--${keyOf(name)}`;
}

export function variableOf(name: SettingName): string {
  return ENVIRONMENT_PREFIX + name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}
