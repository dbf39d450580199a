// Executes the steps of a Dockerfile without an engine, in the order in which it has them: each stage is a directory that
// stands for its root. It shows what a registry isn't needed for: that every command works on what was copied before
// it, and that what the last stage takes from the others is there. It isolates nothing, so commands must stay below their
// working directory.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { finalStage, lastOf, type Dockerfile, type Instruction, type Stage } from './dockerfile.js';

export interface BuiltImage {
  /** Directory that stands for the root of the image. */
  readonly root: string;
  /** Of a stage by its name. */
  readonly rootOf: (stage: string) => string;
  /** The entrypoint's words, absolute paths of the image in place of which stand those on this machine. */
  readonly entrypoint: readonly string[];
}

/**
 * @param context directory that `COPY` takes from
 * @param scratch empty directory for the stages
 * @throws Error with the output of a command that fails
 */
export function buildWithoutEngine(dockerfile: Dockerfile, context: string, scratch: string): BuiltImage {
  const rootOf = (stage: string): string => join(scratch, stage === '' ? 'image' : stage);
  for (const stage of dockerfile.stages) buildStage(stage, context, rootOf);
  const last = finalStage(dockerfile);
  const root = rootOf(last.name);
  const words = lastOf(last, 'ENTRYPOINT')?.words ?? [];
  return {
    root,
    rootOf,
    entrypoint: words.map((word) => (word.startsWith('/') ? join(root, word) : word)),
  };
}

function buildStage(stage: Stage, context: string, rootOf: (stage: string) => string): void {
  const root = rootOf(stage.name);
  mkdirSync(root, { recursive: true });
  let workDir = root;
  for (const instruction of stage.instructions) {
    const { name, flags, rest } = instruction;
    if (name === 'WORKDIR') {
      workDir = rest.startsWith('/') ? join(root, rest) : join(workDir, rest);
      mkdirSync(workDir, { recursive: true });
    } else if (name === 'COPY') {
      const from = flags['from'];
      copy(instruction, from === undefined ? context : rootOf(from), root, workDir);
    } else if (name === 'RUN') runCommand(rest, workDir);
  }
}

function copy({ words }: Instruction, from: string, root: string, workDir: string): void {
  const target = words.at(-1) ?? '';
  const place = target.startsWith('/') ? join(root, target) : join(workDir, target);
  for (const word of words.slice(0, -1)) {
    const source = join(from, word);
    const isInto = statSync(source).isFile() && /(?:^|\/)\.?$/.test(target);
    cpSync(source, isInto ? join(place, basename(word)) : place, { recursive: true, verbatimSymlinks: true });
  }
}

function runCommand(command: string, cwd: string): void {
  // What an npm around us has set is about another package.
  const inherited = Object.entries(process.env).filter(([name]) => !/^(?:npm_|NODE_ENV$|VITEST)/.test(name));
  const env = { ...Object.fromEntries(inherited), npm_config_prefer_offline: 'true' };
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`RUN ${command} ended with ${String(status)}:\n${stdout}${stderr}`);
}
