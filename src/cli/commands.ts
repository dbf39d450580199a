// The table of commands: their words, help and settings. What a command does is loaded when it runs, so that `--help`
// and `key generate` don't wait for a queue library.

import type { CommandDefinition } from './program.js';
import { COMMAND_SETTINGS, type SettingName } from './settings.js';

function command<const Name extends SettingName>(
  definition: CommandDefinition<Name>,
): CommandDefinition<Name> {
  return definition;
}

export const start = command({
  words: 'start',
  summary: 'serve a pool',
  description:
    'Runs the roles of a fleet: the poller claims runs, the executor executes them, the shipper sends their events. ' +
    'Without --redis-url everything runs in this process on an embedded Redis.',
  settings: COMMAND_SETTINGS.start,
  load: async () => (await import('./commands/start.js')).runStart,
});

export const register = command({
  words: 'register',
  summary: 'enrol this machine with a registration token',
  description: 'Enrols this machine once and writes its identity file, which the reference daemon reads too.',
  settings: COMMAND_SETTINGS.register,
  required: ['url', 'token'],
  load: async () => (await import('./commands/register.js')).runRegister,
});

export const dev = command({
  words: 'dev',
  summary: 'run a workflow folder on this machine and watch it',
  description:
    'Runs the workflow in DIR on a local control plane, an embedded Redis and one process with all roles. DIR/dev.json ' +
    'gives input, env, secrets and a script for the model; flags win over it. One run is shown as it happens, of several ' +
    '(--runs) each end is.',
  argument: { name: 'DIR', help: 'folder with workflow.jsonc and index.mjs, or src/index.ts' },
  settings: COMMAND_SETTINGS.dev,
  pairs: {
    env: {
      help: 'a variable of the run',
      name: /^[A-Za-z_][A-Za-z0-9_]{0,119}$/,
      allowed: 'letters, digits and _, and not begin with a digit',
    },
    secret: {
      help: 'a secret that the run may be granted',
      name: /^[A-Za-z0-9_-]{1,120}$/,
      allowed: '1 to 120 letters, digits, _ and -',
    },
  },
  load: async () => (await import('./commands/dev.js')).runDev,
});

export const controlPlane = command({
  words: 'control-plane',
  summary: 'run a local control plane for tests and demos',
  description:
    'Serves the pool, run-control and inference protocols on 127.0.0.1 with a scripted model and an admin API, and ' +
    'prints one JSON line with its address and its tokens. State lives in memory.',
  settings: COMMAND_SETTINGS.controlPlane,
  load: async () => (await import('./commands/controlPlane.js')).runControlPlane,
});

export const keyGenerate = command({
  words: 'key generate',
  group: 'keys of a fleet',
  summary: 'make a fleet key',
  description:
    'Makes the key with which all processes of a fleet seal credentials in Redis. Keep it as a secret.',
  settings: COMMAND_SETTINGS.keyGenerate,
  load: async () => (await import('./commands/keyGenerate.js')).runKeyGenerate,
});

export const configPrint = command({
  words: 'config print',
  group: 'settings',
  summary: 'show the settings that hold here, and where each came from',
  description:
    'Prints every setting in the form of boardwalk-fleet.yaml, with the flag, the variable or the line of the file that ' +
    'it came from. Secrets are masked. With --json, as one JSON object.',
  settings: COMMAND_SETTINGS.configPrint,
  load: async () => (await import('./commands/configPrint.js')).runConfigPrint,
});
