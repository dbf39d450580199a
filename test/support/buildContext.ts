// What a build of an image gets to see of this repository: the files of a checkout that .dockerignore lets through.

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { read, REPOSITORY } from './sourceTree.js';

/** Paths relative to the repository, of what git keeps or would keep, less what is ignored. */
export function buildContext(): readonly string[] {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: REPOSITORY,
    encoding: 'utf8',
  });
  const isIgnored = ignoredBy(read('.dockerignore'));
  return listed
    .split('\0')
    .filter((path) => path !== '' && !isIgnored(path) && existsSync(join(REPOSITORY, path)));
}

/** Copies {@link buildContext} to a directory. */
export function copyBuildContext(target: string): void {
  for (const path of buildContext()) cpSync(join(REPOSITORY, path), join(target, path));
}

/**
 * The rules of .dockerignore: the last line that matches a path or a folder above it decides, `!` lets through, `**`
 * is any number of folders.
 */
export function ignoredBy(text: string): (path: string) => boolean {
  const rules = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ ignores: !line.startsWith('!'), pattern: patternOf(line.replace(/^!/, '')) }));
  return (path) => rules.findLast(({ pattern }) => pattern.test(path))?.ignores ?? false;
}

function patternOf(rule: string): RegExp {
  const source = rule
    .replace(/^\/|\/$/g, '')
    .split(/(\*\*\/|\*\*|\*|\?)/)
    .map((part) => WILDCARDS[part] ?? part.replace(/[.+^${}()|[\]\\]/g, '\\$&'))
    .join('');
  return new RegExp(`^${source}(?:/|$)`);
}

const WILDCARDS: Readonly<Record<string, string>> = {
  '**/': '(?:.*/)?',
  '**': '.*',
  '*': '[^/]*',
  '?': '[^/]',
};
