// The settings of sandboxes: what kind they are and what a container may use. `--host` is older and stays as another
// word for `--sandbox process`; `sandboxOf` guards against the two contradicting each other in silence.

import { z } from 'zod';
import { OperatorError } from '../contract/operatorError.js';
import { mountText } from './mounts.js';
import { defaulted, optional } from './setting.js';
import { count, decimal, flag, mounts, sizeFrom, text, userAndGroup } from './settingValues.js';
import { sizeText } from './sizes.js';

export const SANDBOXES = ['container', 'process'] as const;
export type SandboxKind = (typeof SANDBOXES)[number];

const MIB = 1024 ** 2;

export const SANDBOX_SETTINGS = {
  sandbox: optional<SandboxKind>({
    placeholder: 'KIND',
    help: 'where programs run: container, or process (of this machine, without isolation)',
    schema: z.enum(SANDBOXES, 'must be container or process'),
    fallbackHelp: 'container',
  }),
  host: defaulted<boolean>({
    help: 'the same as --sandbox process',
    schema: flag,
    fallback: false,
  }),
  image: defaulted({
    placeholder: 'IMAGE',
    help: 'image of sandboxes; any that has Node.js',
    schema: text,
    fallback: 'node:24-bookworm-slim',
  }),
  network: defaulted({
    placeholder: 'NETWORK',
    help: 'network of sandboxes: a bridge of ours, none, host, or the name of one',
    schema: text,
    fallback: 'boardwalk-fleet',
  }),
  mount: defaulted({
    placeholder: 'SRC:DST[:ro|:rw]',
    help: 'directory of this machine that sandboxes see, read-only unless it says rw',
    schema: mounts,
    fallback: [],
    fallbackHelp: 'none',
    several: true,
    written: (each) => each.map(mountText),
  }),
  memory: defaulted({
    placeholder: 'SIZE',
    help: 'memory of a sandbox, at least 128m',
    schema: sizeFrom(128 * MIB),
    fallback: 2048 * MIB,
    fallbackHelp: '2g',
    written: sizeText,
  }),
  cpus: defaulted({
    placeholder: 'N',
    help: 'processors of a sandbox, for example 0.5',
    schema: decimal(0.1, 512),
    fallback: 2,
  }),
  pids: defaulted({
    placeholder: 'N',
    help: 'processes and threads of a sandbox; with too few Node.js hangs without a word',
    schema: count(64, 100_000),
    fallback: 1_024,
  }),
  logSize: defaulted({
    placeholder: 'SIZE',
    help: "what the engine keeps of a sandbox's own log, at least 64k",
    schema: sizeFrom(64 * 1024),
    fallback: 10 * MIB,
    fallbackHelp: '10m',
    written: sizeText,
  }),
  sandboxUser: optional({
    placeholder: 'UID[:GID]',
    help: 'user of sandboxes, as numbers',
    schema: userAndGroup,
    fallbackHelp: 'this user; 1000:1000 where this is root',
    written: ({ uid, gid }) => `${uid}:${gid}`,
  }),
} as const;

/** @throws OperatorError `SETTING_INVALID` when `--host` and `--sandbox container` are both given */
export function sandboxOf({
  host,
  sandbox,
}: {
  readonly host: boolean;
  readonly sandbox: SandboxKind | undefined;
}): SandboxKind {
  if (host && sandbox === 'container')
    throw new OperatorError('SETTING_INVALID', '--host and --sandbox container contradict each other.', {
      hint: '--host is the same as --sandbox process: give one of the two.',
      usage: true,
    });
  return host ? 'process' : (sandbox ?? 'container');
}
