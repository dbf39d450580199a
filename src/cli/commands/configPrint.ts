// `config print`: every setting as this machine would use it, and where each came from. What is printed can be saved as
// boardwalk-fleet.yaml and says the same again. It guards against a secret on a screen: a value that is one, or that
// holds one, is a comment with stars.

import { resolve } from 'node:path';
import { Document, isSeq } from 'yaml';
import { EXIT, type CommandRun, type Terminal } from '../program.js';
import { resolveSetting, type Given } from '../givenSettings.js';
import type { Setting } from '../setting.js';
import { sandboxChoice } from '../sandboxes.js';
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
  /** Where a secret stands in a file of its own: that file, from the root, so that it is found from anywhere. */
  readonly secretFile: string | undefined;
}

export const runConfigPrint: CommandRun<SettingOf<'configPrint'>> = async (
  values,
  _input,
  terminal,
  given = { flags: {}, environment: terminal.environment },
) => {
  // What contradicts itself is refused here in the words of `start`.
  sandboxChoice(values);
  const settings = FILE_SETTINGS.map((name) => effective(name, given));
  if (values.json) printJson(settings, terminal);
  else for (const setting of settings) terminal.stdout.write(`${lineOf(setting)}\n`);
  return Promise.resolve(EXIT.done);
};

function effective(name: SettingName, given: Given): Effective {
  const definition: Setting<unknown> = SETTINGS[name];
  const { value, source, secretFile } = resolveSetting(name, given);
  const written = value === undefined ? undefined : (definition.written?.(value) ?? value);
  const [shown, masked] = mask(definition, written);
  return {
    name,
    value: shown,
    source: source ?? DEFAULT,
    masked,
    secretFile: secretFile === undefined ? undefined : resolve(secretFile),
  };
}

/** A database behind a socket's path is no secret; what else an address asks for may be one. */
const OPEN_QUERY = /^(?:\?db=\d*)?$/;

/** A secret is never shown; an address is, with its user but without what may be a password or a token. */
function mask({ secret, veiled }: Setting<unknown>, value: unknown): readonly [unknown, boolean] {
  if (value === undefined || (secret !== true && veiled !== true)) return [value, false];
  if (secret === true) return [STARS, true];
  if (typeof value !== 'string' || !URL.canParse(value)) return [STARS, true];
  const url = new URL(value);
  if (url.password === '' && OPEN_QUERY.test(url.search) && url.hash === '') return [value, false];
  if (url.password !== '') url.password = STARS;
  if (url.search !== '') url.search = STARS;
  url.hash = '';
  return [url.href, true];
}

function lineOf({ name, value, source, masked, secretFile }: Effective): string {
  const key = keyOf(name);
  if (value === undefined) return `# ${key}:`;
  const comment = ` # ${oneLine(source)}`;
  if (secretFile !== undefined) return `${pairText(`${key}-file`, secretFile)} ${comment}`;
  return `${masked ? '# ' : ''}${pairText(key, value)} ${comment}`;
}

/** `key: value` on one line, whatever the value. */
function pairText(key: string, value: unknown): string {
  const document = new Document({ [key]: value });
  const node = document.get(key, true);
  if (isSeq(node)) node.flow = true;
  // Folded text would go on behind the comment.
  const options = { lineWidth: 0, blockQuote: false, flowCollectionPadding: false } as const;
  return document.toString({ ...options, doubleQuotedMinMultiLineLength: Infinity }).trimEnd();
}

/** The path of a file may have a line end in it, and what follows would be no comment any more. */
function oneLine(source: string): string {
  return /\p{Cc}/u.test(source) ? JSON.stringify(source) : source;
}

function printJson(settings: readonly Effective[], terminal: Terminal): void {
  const all = settings.map(({ name, value, source, masked, secretFile }) => [
    keyOf(name),
    { value: value ?? null, source, ...(masked ? { masked } : {}), secretFile },
  ]);
  terminal.stdout.write(`${JSON.stringify(Object.fromEntries(all), null, 2)}\n`);
}
