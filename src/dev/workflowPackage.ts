// A workflow's folder as the archive that a platform would keep of it (protocol/program.md 1): one bundled module with
// the SDK left out, the descriptor, and the files that go along. What is wrong with the folder is said with its path,
// before there is a run.

import { readFile, stat } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { build, type BuildFailure, type Message } from 'esbuild';
import { glob } from 'tinyglobby';
import { isRecord, type UnknownRecord } from '../contract/json.js';
import { parseJsonc } from '../contract/jsonc.js';
import { isRelativePath } from '../contract/manifest.js';
import { OperatorError } from '../contract/operatorError.js';
import { checkDescriptor } from './descriptor.js';
import { packArchive } from './controlPlane/programs.js';

export interface WorkflowPackage {
  /** The descriptor, without `$schema`. */
  readonly manifest: UnknownRecord;
  /** gzip tar */
  readonly archive: Uint8Array;
  /** Path of the entry inside the archive. */
  readonly entry: string;
  /** For whoever wrote the folder. */
  readonly warnings: readonly string[];
}

const DESCRIPTORS = ['workflow.jsonc', 'workflow.json'] as const;
/** protocol/sdk.md 1, `DEFAULT_ENTRY_SOURCES`. */
const ENTRY_SOURCES = ['src/index', 'index'].flatMap((stem) =>
  ['ts', 'tsx', 'mts', 'js', 'mjs'].map((ending) => `${stem}.${ending}`),
);
const ENTRY = 'index.mjs';
/** Programs are built for Node 24 on the platform; here they must also run on the oldest Node that we support. */
const TARGET = 'node20';
/** protocol/program.md 1: asset files. */
const MOST_FILES = 200;

/** @throws OperatorError `WORKFLOW_INVALID`, JsoncError */
export async function packWorkflow(dir: string): Promise<WorkflowPackage> {
  const root = resolve(dir);
  const descriptor = await readDescriptor(root);
  const source = await findEntry(root, descriptor.manifest);
  const files: Record<string, string | Uint8Array> = {
    ...(await readAssets(root, descriptor.manifest)),
    [ENTRY]: await bundle(root, source),
    [descriptor.name]: descriptor.text,
  };
  try {
    const { manifest, warnings } = descriptor;
    return { manifest, archive: packArchive(files), entry: ENTRY, warnings };
  } catch (error) {
    throw invalid(root, error instanceof Error ? error.message : 'it can not be packed', error);
  }
}

interface Descriptor {
  readonly name: string;
  readonly text: string;
  readonly manifest: UnknownRecord;
  readonly warnings: readonly string[];
}

async function readDescriptor(root: string): Promise<Descriptor> {
  const there = await stat(root).catch(() => null);
  if (there === null) throw invalid(root, 'there is no such folder');
  if (!there.isDirectory()) throw invalid(root, 'it is a file; name the folder that holds workflow.jsonc');
  const found: { name: string; text: string }[] = [];
  for (const name of DESCRIPTORS) {
    const text = await readFile(join(root, name), 'utf8').catch(() => null);
    if (text !== null) found.push({ name, text });
  }
  const [descriptor, second] = found;
  if (descriptor === undefined) throw invalid(root, 'it has no workflow.jsonc');
  if (second !== undefined) throw invalid(root, 'it has both workflow.jsonc and workflow.json; keep one');
  const path = join(root, descriptor.name);
  const value = parseJsonc(descriptor.text, path);
  if (!isRecord(value)) throw invalid(path, 'it must hold an object');
  for (const derived of ['input_schema', 'output_schema'])
    if (derived in value)
      throw invalid(path, `${derived} is derived from the program and can not be written here`);
  const manifest = Object.fromEntries(Object.entries(value).filter(([key]) => key !== '$schema'));
  const { problems, warnings } = checkDescriptor(manifest);
  if (problems[0] !== undefined) throw invalid(path, problems.join('; '));
  return { ...descriptor, manifest, warnings: warnings.map((warning) => `${path}: ${warning}`) };
}

async function findEntry(root: string, manifest: UnknownRecord): Promise<string> {
  const named = manifest['entry'];
  if (named !== undefined) {
    if (typeof named !== 'string' || !isRelativePath(named))
      throw invalid(root, 'entry must be a path inside the folder');
    if (named.endsWith('.py'))
      throw invalid(root, `${named}: Python programs are not available in boardwalk-fleet 0.1 yet`);
    if (await isFile(join(root, named))) return named;
    throw invalid(root, `its entry ${named} is missing`);
  }
  for (const candidate of ENTRY_SOURCES) if (await isFile(join(root, candidate))) return candidate;
  if (await isFile(join(root, 'main.py')))
    throw invalid(root, 'Python programs are not available in boardwalk-fleet 0.1 yet');
  throw invalid(root, `it has no entry module; looked for ${ENTRY_SOURCES.join(', ')}`);
}

async function bundle(root: string, source: string): Promise<string> {
  try {
    const result = await build({
      absWorkingDir: root,
      entryPoints: [source],
      bundle: true,
      write: false,
      format: 'esm',
      platform: 'node',
      target: TARGET,
      external: ['@boardwalk-labs/workflow', '@boardwalk-labs/workflow/*'],
      logLevel: 'silent',
      // The program runs elsewhere; a stack that it prints must name the files that the author knows.
      sourcemap: 'inline',
      sourceRoot: `${root}/`,
      sourcesContent: false,
    });
    return result.outputFiles[0]?.text ?? '';
  } catch (error) {
    throw invalid(root, describe(root, error), error);
  }
}

function describe(root: string, error: unknown): string {
  const [first] = isBuildFailure(error) ? error.errors : [];
  if (first === undefined) return error instanceof Error ? error.message : 'it can not be bundled';
  return `${place(root, first)}${first.text}`;
}

function place(root: string, { location }: Message): string {
  if (location === null) return '';
  return `${relative(root, resolve(root, location.file))}:${location.line}:${location.column + 1}: `;
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && 'errors' in error && Array.isArray(error.errors);
}

/** What travels beside the program: its skills, its README, and what the descriptor's `files` name. */
async function readAssets(root: string, manifest: UnknownRecord): Promise<Record<string, Uint8Array>> {
  const wanted = manifest['files'] ?? [];
  if (!Array.isArray(wanted) || !wanted.every((each) => typeof each === 'string' && isRelativePath(each)))
    throw invalid(root, 'files must be a list of relative paths or patterns');
  const patterns: readonly string[] = ['skills/**', 'README.md', ...(wanted as string[])];
  const paths = await glob([...patterns], {
    cwd: root,
    ignore: ['**/node_modules/**', '**/.git/**'],
    dot: false,
    followSymbolicLinks: false,
    expandDirectories: false,
  });
  if (paths.length > MOST_FILES)
    throw invalid(root, `more than ${MOST_FILES} files would go along with the program`);
  const assets: Record<string, Uint8Array> = {};
  for (const path of paths.sort()) assets[path] = await readFile(join(root, path));
  return assets;
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() ?? false;
}

function invalid(path: string, problem: string, cause?: unknown): OperatorError {
  const words = problem.replace(/\.$/, '');
  return new OperatorError('WORKFLOW_INVALID', `${path} is no workflow that can run: ${words}.`, { cause });
}
