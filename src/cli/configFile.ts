// Settings from boardwalk-fleet.yaml: the file's keys as what a person gave, with the line of each. Guards against a
// typing error that is ignored in silence, and against secrets in a file that others read or in an error that quotes
// it: the YAML library's own messages hold the text of the file, so its words are ours. What a value may be is not
// asked here but where flags and variables are checked: one file serves all commands, and each takes what it knows.

import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Document,
  type Scalar,
  type YAMLError,
} from 'yaml';
import { OperatorError } from '../contract/operatorError.js';
import { nearest } from './nearest.js';
import type { GivenValue, Setting } from './setting.js';
import { flagOf, keyOf, SETTINGS, variableOf, type SettingName } from './settings.js';

export const CONFIG_FILE = 'boardwalk-fleet.yaml';
/** A key for the path of a file that holds the value of a secret setting. */
const FILE_SUFFIX = '-file';

export interface FileEntry {
  /** The file and the line: `boardwalk-fleet.yaml:3`. */
  readonly place: string;
  /** As it stands in the file: `redis-password-file`. */
  readonly key: string;
  /** For a secret that stands in a file of its own, that file's path. */
  readonly value: GivenValue;
  readonly isFile: boolean;
}

export type ConfigEntries = ReadonlyMap<SettingName, FileEntry>;

/** The file that somebody named, and where they did. */
export interface NamedConfig {
  readonly where: string;
  readonly path: string;
}

const NOTHING: ConfigEntries = new Map();

/**
 * The entries of the named file, else of the one in `directory`, if it is there.
 *
 * @throws OperatorError `CONFIG_INVALID`, naming file and line
 */
export function readConfig(named: NamedConfig | null, directory = '.'): ConfigEntries {
  const path = named?.path ?? join(directory, CONFIG_FILE);
  const file = readText(path, named);
  return file === null ? NOTHING : entriesOf(path, file.text, file.isPublic);
}

interface ReadFile {
  readonly text: string;
  /** Others than its owner may read it. */
  readonly isPublic: boolean;
}

/** null: nobody named it, and it is not there. */
function readText(path: string, named: NamedConfig | null): ReadFile | null {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, 'r');
    const isPublic = process.platform !== 'win32' && (fstatSync(descriptor).mode & 0o077) !== 0;
    return { text: readFileSync(descriptor, 'utf8'), isPublic };
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    if (named === null && why === 'ENOENT') return null;
    const where = named === null ? '' : `${named.where}: `;
    throw new OperatorError('CONFIG_INVALID', `${where}the file ${path} can't be read (${why}).`, {
      usage: true,
      cause: error,
    });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function entriesOf(path: string, text: string, isPublic: boolean): ConfigEntries {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const placeOf = (offset = 0): string => `${path}:${lines.linePos(offset).line || 1}`;
  const [error] = [...document.errors, ...document.warnings];
  if (error !== undefined) throw invalid(placeOf(error.pos[0]), wordsFor(error, text));
  const root = document.contents;
  const entries = new Map<SettingName, FileEntry>();
  if (root === null || (isScalar(root) && root.value === null)) return entries;
  if (!isMap(root))
    throw invalid(placeOf(root.range[0]), 'the file must hold settings, one `key: value` a line');
  for (const { key, value } of root.items) {
    if (!isScalar(key)) throw invalid(placeOf(), 'a key must be the name of a setting');
    const place = placeOf(key.range[0]);
    const word = key.source;
    const { name, isFile } = settingOf(word, place);
    const given = valueOf(value, { document, name, where: `${place}: ${word}` });
    if (given === null) continue;
    const former = entries.get(name);
    if (former !== undefined) throw invalid(place, `${word} and ${former.key} are the same setting`);
    const isClear = definitionOf(name).secret === true && !isFile;
    if (isClear && isPublic)
      throw invalid(
        place,
        `${word} is a secret, and others may read this file`,
        `Run \`chmod 600 ${path}\`, or name a file that holds it: ${word}${FILE_SUFFIX}: PATH.`,
      );
    entries.set(name, { place, key: word, isFile, value: isFile ? pathFrom(path, given) : given });
  }
  return entries;
}

function settingOf(word: string, place: string): KnownKey {
  const known = KEYS.get(word);
  if (known === undefined) {
    const meant = nearest(
      word,
      [...KEYS.keys()].filter((key) => !isOneShot(key)),
    );
    throw invalid(
      place,
      `${word}: no such setting`,
      meant === undefined ? undefined : `Did you mean ${meant}?`,
    );
  }
  if (isOneShot(word))
    throw invalid(
      place,
      `${word} can't be set in a file`,
      `Give ${flagOf(known.name)} or set ${variableOf(known.name)}: it is for one command, and the file for all.`,
    );
  return known;
}

interface KnownKey {
  readonly name: SettingName;
  readonly isFile: boolean;
}

/** By key; secrets have a second one. */
const KEYS: ReadonlyMap<string, KnownKey> = new Map(
  (Object.keys(SETTINGS) as SettingName[]).flatMap((name): [string, KnownKey][] => [
    [keyOf(name), { name, isFile: false }],
    ...(definitionOf(name).secret === true
      ? [[keyOf(name) + FILE_SUFFIX, { name, isFile: true }] satisfies [string, KnownKey]]
      : []),
  ]),
);

function isOneShot(key: string): boolean {
  const known = KEYS.get(key);
  return known !== undefined && definitionOf(known.name).oneShot === true;
}

function definitionOf(name: SettingName): Setting<unknown> {
  return SETTINGS[name];
}

interface Asked {
  readonly document: Document;
  readonly name: SettingName;
  readonly where: string;
}

/** null: a key with nothing behind it, which is as good as none. */
function valueOf(node: unknown, { document, name, where }: Asked): GivenValue | null {
  const resolved = isAlias(node) ? node.resolve(document) : node;
  if (isSeq(resolved))
    return resolved.items.map((item) => {
      const part = isAlias(item) ? item.resolve(document) : item;
      if (!isScalar(part) || part.value === null)
        throw invalid(where, 'each part of the list must be a value');
      return textOf(part);
    });
  if (resolved === null) return null;
  if (!isScalar(resolved)) throw invalid(where, 'must be a value or a list of values');
  if (resolved.value === null) return null;
  const { placeholder, secret } = definitionOf(name);
  const isSwitch = placeholder === undefined && secret !== true;
  return isSwitch && typeof resolved.value === 'boolean' ? resolved.value : textOf(resolved);
}

/** As it is written: 007 is no 7 to a setting that is a text. */
function textOf({ value, source }: Scalar): string {
  return typeof value === 'string' ? value : (source ?? String(value));
}

function pathFrom(config: string, value: GivenValue): GivenValue {
  return typeof value === 'string' && value !== '' ? resolve(dirname(config), value) : value;
}

function wordsFor({ code, pos }: YAMLError, text: string): string {
  switch (code) {
    case 'DUPLICATE_KEY':
      return `${/^[\w-]*/.exec(text.slice(pos[0], pos[0] + 64))?.[0] ?? 'a key'} is there twice`;
    case 'MULTIPLE_DOCS':
      return 'the file must be one YAML document';
    case 'BAD_INDENT':
    case 'TAB_AS_INDENT':
    case 'BLOCK_AS_IMPLICIT_KEY':
    case 'MULTILINE_IMPLICIT_KEY':
      return 'is not indented as YAML must be, or a bracket is not closed';
    case 'MISSING_CHAR':
      return 'is no YAML: a quote, a bracket or a colon is missing';
    case 'TAG_RESOLVE_FAILED':
      return 'has a YAML tag (!…) that is not known here';
    default:
      return 'is no YAML';
  }
}

function invalid(where: string, what: string, hint?: string): OperatorError {
  return new OperatorError('CONFIG_INVALID', `${where}: ${what}.`, {
    usage: true,
    ...(hint === undefined ? {} : { hint }),
  });
}
