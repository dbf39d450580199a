// From what a person gave to the values of settings. Nothing else reads the environment or parses a value, so a wrong
// setting is refused in one place, with its name, the value unless it may be a secret, and what is allowed.

import { readFileSync } from 'node:fs';
import { OperatorError } from '../contract/operatorError.js';
import type { GivenValue, Setting } from './setting.js';
import {
  ENVIRONMENT_PREFIX,
  flagOf,
  SETTINGS,
  variableOf,
  type SettingName,
  type Settings,
} from './settings.js';

/** What a person gave, before it is checked: flags by setting name (commander's), and the environment. */
export interface Given {
  readonly flags: Readonly<Partial<Record<string, GivenValue>>>;
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
  const hidden = definition.secret === true || definition.veiled === true;
  const shown = hidden ? 'the value' : JSON.stringify(source.value);
  const why = parsed.error.issues[0]?.message ?? 'is not valid';
  throw new OperatorError('SETTING_INVALID', `${source.where}: ${shown} ${why}.`, { usage: true });
}

function find(
  name: SettingName,
  definition: Setting<unknown>,
  given: Given,
): { where: string; value: GivenValue } | null {
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
      usage: true,
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
