// The reference of all settings, as docs/configuration.md has it. From the one schema, so that it can't say anything else.

import { COMMAND_SETTINGS, flagOf, keyOf, SETTINGS, variableOf, type SettingName } from './settings.js';
import type { Setting } from './setting.js';

/** By property of `COMMAND_SETTINGS`. */
const COMMAND_WORDS: Readonly<Record<keyof typeof COMMAND_SETTINGS, string>> = {
  start: 'start',
  register: 'register',
  dev: 'dev',
  controlPlane: 'control-plane',
  keyGenerate: 'key generate',
  configPrint: 'config print',
};

/** A Markdown table: setting, flag, variable, default, meaning, commands. */
export function settingsReference(): string {
  const rows = (Object.keys(SETTINGS) as SettingName[]).map(rowOf);
  return [
    '| Flag | Variable | In the file | Default | What it is | Commands |',
    '| - | - | - | - | - | - |',
    ...rows,
  ].join('\n');
}

function rowOf(name: SettingName): string {
  const definition: Setting<unknown> = SETTINGS[name];
  const { placeholder, secret = false, oneShot = false, several = false } = definition;
  const flag = placeholder === undefined ? flagOf(name) : `${flagOf(name)} ${placeholder}`;
  const variable = variableOf(name);
  const commands = (Object.keys(COMMAND_WORDS) as (keyof typeof COMMAND_WORDS)[])
    .filter((command) => (COMMAND_SETTINGS[command] as readonly SettingName[]).includes(name))
    .map((command) => COMMAND_WORDS[command]);
  const cells = [
    secret ? 'none: arguments are public' : `${code(flag)}${several ? ', may be repeated' : ''}`,
    secret ? `${code(variable)} or ${code(`${variable}_FILE`)}` : code(variable),
    oneShot ? 'no' : secret ? `${code(keyOf(name))} or ${code(`${keyOf(name)}-file`)}` : code(keyOf(name)),
    defaultOf(definition),
    definition.help,
    commands.length === 0 ? 'all' : commands.join(', '),
  ];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function defaultOf({ fallback, fallbackHelp }: Setting<unknown>): string {
  // What looks like a tag would not be shown.
  if (fallbackHelp !== undefined) return fallbackHelp.replaceAll('<', '\\<');
  if (fallback === undefined) return 'none';
  return code(typeof fallback === 'string' ? fallback : JSON.stringify(fallback));
}

function code(text: string): string {
  return `\`${text}\``;
}
