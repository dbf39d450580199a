// Which Node executes programs? Asked once at start, so that a wrong `--node` is one error and not the failure of every
// run. Programs are built for Node 24 (protocol/program.md 1); an older one runs most of them, and is warned about.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { OperatorError } from '../contract/operatorError.js';

const BUILT_FOR = 24;
const ANSWER_TIMEOUT_MS = 10_000;

/**
 * @param path absent: the Node of this process
 * @returns a warning, or null when all is well
 * @throws OperatorError `NODE_UNUSABLE`
 */
export async function checkNode(path: string | undefined): Promise<string | null> {
  const version = path === undefined ? process.version : await versionOf(path);
  if (Number(/^v(\d+)\./.exec(version)?.[1]) >= BUILT_FOR) return null;
  return `programs are built for Node ${BUILT_FOR}, and ${path ?? process.execPath} is ${version} (--node PATH names another)`;
}

async function versionOf(path: string): Promise<string> {
  let why = 'it does not answer as Node does';
  try {
    const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: ANSWER_TIMEOUT_MS });
    const version = stdout.trim();
    if (/^v\d+\.\d+\.\d+/.test(version)) return version;
  } catch (error) {
    why = error instanceof Error && 'code' in error ? String(error.code) : why;
  }
  throw new OperatorError('NODE_UNUSABLE', `--node: ${path} can't be used (${why}).`, {
    hint: 'Name the program file of a Node.js, for example the output of `which node`.',
    usage: true,
  });
}
