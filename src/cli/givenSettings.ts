// From what a person gave to the values of settings. Nothing else reads the environment or parses a value, so a wrong
// setting is refused in one place, with its name, the value unless it may be a secret, and what is allowed.

import { readFileSync } from 'node:fs';
import { OperatorError } from '../contract/operatorError.js';
import type { ConfigEntries } from './configFile.js';
import type { GivenValue, Setting } from './setting.js';
import {
  ENVIRONMENT_PREFIX,
  flagOf,
  SETTINGS,
  variableOf,
  type SettingName,
  type Settings,
} from './settings.js';

/** What a person gave, before it is checked: flags by setting name (commander's), the environment, and the file. */
export interface Given {
  readonly flags: Readonly<Partial<Record<string, GivenValue>>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly file?: ConfigEntries;
}

/** Where a value came from: `--slots`, `BOARDWALK_FLEET_SLOTS`, `boardwalk-fleet.yaml:3`; null: nobody gave it. */
export type Source = string | null;

/**
 * The values of the named settings: a flag wins over a variable, a variable over the file, the file over the default.
 *
 * @throws OperatorError `SETTING_INVALID`, naming the setting where it was given, the value and what is allowed.
 */
export function resolveSettings<const Name extends SettingName>(
  names: readonly Name[],
  given: Given,
): Settings<Name> {
  const values: Record<string, unknown> = {};
  for (const name of names) values[name] = resolveSetting(name, given).value;
  return values as Settings<Name>;
}

/** One value and where it came from. */
export interface ResolvedSetting {
  readonly value: unknown;
  readonly source: Source;
  /** For a secret that stands in a file of its own: that file. */
  readonly secretFile?: string | undefined;
}

/** @throws OperatorError `SETTING_INVALID` */
export function resolveSetting(name: SettingName, given: Given): ResolvedSetting {
  const definition: Setting<unknown> = SETTINGS[name];
  const found = find(name, definition, given);
  if (found === null || isOverruled(name, found, given)) return { value: definition.fallback, source: null };
  return { value: parse(definition, found), source: found.source, secretFile: found.secretFile };
}

function parse(definition: Setting<unknown>, { where, value }: Found): unknown {
  const parsed = definition.schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const hidden = definition.secret === true || definition.veiled === true;
  const shown = hidden ? 'the value' : JSON.stringify(value);
  const why = parsed.error.issues[0]?.message ?? 'is not valid';
  throw new OperatorError('SETTING_INVALID', `${where}: ${shown} ${why}.`, { usage: true });
}

interface Found {
  readonly strength: 'flag' | 'variable' | 'file';
  /** How an error names it. */
  readonly where: string;
  readonly source: string;
  readonly value: GivenValue;
  readonly secretFile?: string;
}

const STRENGTHS = ['file', 'variable', 'flag'] as const;

function find(
  name: SettingName,
  { secret = false }: Setting<unknown>,
  { flags, environment, file }: Given,
): Found | null {
  const flag = secret ? undefined : flags[name];
  if (flag !== undefined) return { strength: 'flag', where: flagOf(name), source: flagOf(name), value: flag };
  const variable = variableOf(name);
  const value = environment[variable];
  if (value !== undefined && value !== '')
    return { strength: 'variable', where: variable, source: variable, value };
  const fileVariable = `${variable}_FILE`;
  const path = secret ? environment[fileVariable] : undefined;
  if (path !== undefined && path !== '')
    return {
      strength: 'variable',
      where: fileVariable,
      source: fileVariable,
      value: readSecretFile(fileVariable, path),
      secretFile: path,
    };
  const entry = file?.get(name);
  if (entry === undefined) return null;
  const where = `${entry.place}: ${entry.key}`;
  const found = { strength: 'file', where, source: entry.place } as const;
  if (!entry.isFile) return { ...found, value: entry.value };
  return { ...found, value: readSecretFile(where, entry.value), secretFile: String(entry.value) };
}

/**
 * `host` and `sandbox` are two words for one thing: what is said in a stronger place overrules the other word in a
 * weaker one. Said in one place, they may contradict each other (`sandboxOf`).
 */
function isOverruled(name: SettingName, { strength }: Found, given: Given): boolean {
  const other = name === 'host' ? 'sandbox' : name === 'sandbox' ? 'host' : null;
  const rival = other === null ? null : find(other, SETTINGS[other], given);
  if (other === null || rival === null) return false;
  // A switch that is off says nothing.
  if (other === 'host' && parse(SETTINGS.host, rival) === false) return false;
  return STRENGTHS.indexOf(rival.strength) > STRENGTHS.indexOf(strength);
}

function readSecretFile(where: string, file: GivenValue): string {
  if (typeof file !== 'string' || file === '')
    throw new OperatorError('SETTING_INVALID', `${where}: the value must be the path of a file.`, {
      usage: true,
    });
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
