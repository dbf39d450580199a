// `config print`: every setting as this machine would use it, and where each came from. What is printed can be saved as
// boardwalk-fleet.yaml and says the same again. It guards against a secret on a screen: a value that is one, or that
// holds one, is a comment with stars.

import { stringify } from 'yaml';
import { EXIT, type CommandRun, type Terminal } from '../program.js';
import { resolveSetting, type Given } from '../givenSettings.js';
import type { Setting } from '../setting.js';
import { FILE_SETTINGS, keyOf, SETTINGS, type SettingName, type SettingOf } from '../settings.js';

const STARS = '***';
const DEFAULT = 'default';

interface Effective {
  readonly name: SettingName;
  /** In the form of the file; `undefined`: there is none. */
  readonly value: unknown;
  /** As in an error: `--slots`, `BOARDWALK_FLEET_SLOTS`, `boardwalk-fleet.yaml:3`, or `default`. */
  readonly source: string;
  /** Its value is not shown whole. */
  readonly masked: boolean;
}

export const runConfigPrint: CommandRun<SettingOf<'configPrint'>> = async (
  { json },
  _input,
  terminal,
  given = { flags: {}, environment: terminal.environment },
) => {
  const settings = FILE_SETTINGS.map((name) => effective(name, given));
  if (json) printJson(settings, terminal);
  else for (const setting of settings) terminal.stdout.write(`${lineOf(setting)}\n`);
  return Promise.resolve(EXIT.done);
};

function effective(name: SettingName, given: Given): Effective {
  const definition: Setting<unknown> = SETTINGS[name];
  const { value, source } = resolveSetting(name, given);
  const written = value === undefined ? undefined : (definition.written?.(value) ?? value);
  const [shown, masked] = mask(definition, written);
  return { name, value: shown, source: source ?? DEFAULT, masked };
}

/** A secret is never shown; an address is, without its password. */
function mask({ secret, veiled }: Setting<unknown>, value: unknown): readonly [unknown, boolean] {
  if (value === undefined || (secret !== true && veiled !== true)) return [value, false];
  if (secret === true) return [STARS, true];
  if (typeof value !== 'string' || !URL.canParse(value)) return [STARS, true];
  const url = new URL(value);
  if (url.username === '' && url.password === '' && url.search === '') return [value, false];
  const user = url.username === '' && url.password === '' ? '' : `${STARS}@`;
  return [`${url.protocol}//${user}${url.host}${url.pathname}${url.search === '' ? '' : `?${STARS}`}`, true];
}

function lineOf({ name, value, source, masked }: Effective): string {
  if (value === undefined) return `# ${keyOf(name)}:`;
  const shown = stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trimEnd();
  return `${masked ? '# ' : ''}${keyOf(name)}: ${shown}  # ${source}`;
}

function printJson(settings: readonly Effective[], terminal: Terminal): void {
  const all = settings.map(({ name, value, source, masked }) => [
    keyOf(name),
    { value: value ?? null, source, ...(masked ? { masked } : {}) },
  ]);
  terminal.stdout.write(`${JSON.stringify(Object.fromEntries(all), null, 2)}\n`);
}
