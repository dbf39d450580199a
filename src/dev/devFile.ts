// `dev.json` beside a workflow: what a local run gets instead of what a platform would send. A wrong file is refused
// with the field's name, because a run that silently ignores its input wastes an afternoon.

import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { OperatorError } from '../contract/operatorError.js';

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
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const where = issue === undefined || issue.path.length === 0 ? 'the file' : issue.path.join('.');
  throw new OperatorError('DEV_FILE_INVALID', `${path}: ${where}: ${issue?.message ?? 'is not valid'}.`, {
    hint: 'Allowed are input, env, secrets, answers and script.',
  });
}

/** A script file by itself: a JSON array. @throws OperatorError `DEV_FILE_INVALID` */
export async function readScriptFile(path: string): Promise<readonly unknown[]> {
  const script = await readJsonFile(path, null);
  if (Array.isArray(script)) return script as readonly unknown[];
  throw new OperatorError(
    'DEV_FILE_INVALID',
    `${path}: a script must be a JSON array${script === null ? ', and there is no such file' : ''}.`,
  );
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
    // The parser's message may quote the text, which holds secrets: only its position is passed on.
    const position = /position \d+(?: \(line \d+ column \d+\))?/.exec(
      error instanceof Error ? error.message : '',
    )?.[0];
    throw new OperatorError(
      'DEV_FILE_INVALID',
      `${path} is not JSON${position === undefined ? '' : ` (at ${position})`}.`,
    );
  }
}
