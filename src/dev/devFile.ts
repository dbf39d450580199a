// `dev.json` beside a workflow: what a local run gets instead of what a platform would send. A wrong file is refused
// with the field's name, because a run that silently ignores its input wastes an afternoon.

import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { OperatorError } from '../contract/operatorError.js';
import { parseScript } from './scriptedModel.js';

const devFileSchema = z.strictObject({
  input: z.unknown().optional(),
  env: z.record(z.string().min(1), z.string()).default({}),
  secrets: z.record(z.string().min(1), z.string()).default({}),
  /** Answers of human gates by key; used from the issue on that brings the gates. */
  answers: z.record(z.string().min(1), z.unknown()).default({}),
  script: z.array(z.unknown()).optional(),
});

export type DevFile = z.infer<typeof devFileSchema>;

/** @throws OperatorError `DEV_FILE_INVALID`; an absent file is an empty one */
export async function readDevFile(path: string): Promise<DevFile> {
  const parsed = devFileSchema.safeParse(await readJsonFile(path, {}));
  if (parsed.success) {
    if (parsed.data.script !== undefined) checkScript(path, parsed.data.script);
    return parsed.data;
  }
  const issue = parsed.error.issues[0];
  throw new OperatorError('DEV_FILE_INVALID', `${path}: ${wordsOf(issue)}.`, {
    hint: 'Allowed are input, env, secrets, answers and script.',
  });
}

/** Never with the value: it may be a secret. */
function wordsOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue?.code === 'unrecognized_keys') return `no such field: ${issue.keys.join(', ')}`;
  const where = issue === undefined || issue.path.length === 0 ? 'the file' : issue.path.join('.');
  return `${where}: ${issue?.message ?? 'is not valid'}`;
}

/** The script of a `dev.json`, checked. @throws OperatorError `SCRIPT_INVALID`, which names the file */
function checkScript(path: string, script: unknown): void {
  try {
    parseScript(script);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    throw new OperatorError(error.code, `${path}: ${error.message}`, {
      ...(error.hint === undefined ? {} : { hint: error.hint }),
      cause: error,
    });
  }
}

/** A script file by itself: a JSON array. @throws OperatorError `DEV_FILE_INVALID`, `SCRIPT_INVALID` */
export async function readScriptFile(path: string): Promise<readonly unknown[]> {
  const absent = Symbol('absent');
  const script = await readJsonFile(path, absent);
  if (script === absent)
    throw new OperatorError('DEV_FILE_INVALID', `--script: there is no file ${path}.`, { usage: true });
  if (!Array.isArray(script))
    throw new OperatorError('DEV_FILE_INVALID', `${path}: a script must be a JSON array.`);
  checkScript(path, script);
  return script as readonly unknown[];
}

async function readJsonFile(path: string, absent: unknown): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return absent;
    throw new OperatorError('DEV_FILE_INVALID', `${path} can't be read.`, { cause: error });
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new OperatorError('DEV_FILE_INVALID', `${path}${placeOf(text, error)}: it is not JSON.`);
  }
}

/** The parser's message may quote the text, which holds secrets: only its position is passed on. */
function placeOf(text: string, error: unknown): string {
  const message = error instanceof Error ? error.message : '';
  const position = /position (\d+)/.exec(message)?.[1];
  // Without a position it is the end that came too early.
  const before = text.slice(0, position === undefined ? text.length : Number(position)).split(/\r\n|\r|\n/);
  return `:${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
}
