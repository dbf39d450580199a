// The package as somebody else installs it: packed, in an empty project, type-checked against, imported and run. What is
// tested is the tarball: a file that is missing from it is missing here.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HELLO } from '../../support/localFleet.js';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const QUIET = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];
const MAX_PACKED_BYTES = 2_000_000;

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

let dir = '';
let packed: Packed;
let entries: readonly string[] = [];

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'bwf-consumer-'));
  const pack = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', dir], {
    cwd: ROOT,
  });
  [packed] = JSON.parse(pack.stdout) as [Packed];
  const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    exports: Record<string, unknown>;
    devDependencies: Record<string, string>;
  };
  entries = Object.keys(manifest.exports)
    .filter((entry) => entry !== './package.json')
    .map((entry) => entry.replace(/^\./, 'boardwalk-fleet'));
  await writeFile(join(dir, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }');
  const types = `@types/node@${manifest.devDependencies['@types/node'] ?? ''}`;
  await run('npm', ['install', ...QUIET, `./${packed.filename}`, types], { cwd: dir });
}, 120_000);
afterAll(() => rm(dir, { recursive: true, force: true }));

describe('the package', () => {
  it('carries what is run, its declarations and their words, and nothing of its making', () => {
    const paths = packed.files.map(({ path }) => path);
    const foreign = paths.filter(
      (path) =>
        !/^(?:dist\/.+\.(?:js|mjs|d\.ts|js\.map|lua|json)|package\.json|README\.md|LICENSE|CHANGELOG\.md)$/.test(
          path,
        ),
    );
    expect(foreign).toEqual([]);
    expect(paths).toContain('dist/sandbox/watchdog.mjs');
    expect(packed.size).toBeLessThan(MAX_PACKED_BYTES);
  });

  it('brings the source of every map along, so that a trace leads somewhere', async () => {
    const map = await readFile(
      join(dir, 'node_modules/boardwalk-fleet/dist/executor/executor.js.map'),
      'utf8',
    );
    expect((JSON.parse(map) as { sourcesContent: string[] }).sourcesContent[0]).toContain('class Executor');
  });

  it.each(['nodenext', 'bundler'])(
    'type-checks strictly with what it exports, with the resolution %s',
    async (resolution) => {
      const readme = await readFile(join(ROOT, 'README.md'), 'utf8');
      const [, example] = /## As a library[\s\S]*?```ts\n([\s\S]*?)```/.exec(readme) ?? [];
      await mkdir(join(dir, 'src'), { recursive: true });
      await writeFile(join(dir, 'src/example.ts'), example ?? '');
      const all = entries.map((entry, index) => `export * as entry${index} from '${entry}';`).join('\n');
      await writeFile(join(dir, 'src/all.ts'), all);
      const compilerOptions = {
        target: 'es2023',
        module: resolution === 'nodenext' ? 'nodenext' : 'esnext',
        moduleResolution: resolution,
        types: ['node'],
        strict: true,
        exactOptionalPropertyTypes: true,
        noEmit: true,
        // Declarations of our dependencies are theirs to mend.
        skipLibCheck: true,
      };
      await writeFile(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }));
      const checked = await run(process.execPath, [TSC, '-p', dir]).catch((error: unknown) => error);
      expect((checked as { stdout: string }).stdout).toBe('');
    },
  );

  it('is imported without a word, a timer or a connection, each entry alone', async () => {
    for (const entry of entries) {
      const script = `const all = await import('${entry}'); process.stdout.write(String(Object.keys(all).length));`;
      const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', script], {
        cwd: dir,
        timeout: 20_000,
      });
      expect({ entry, stderr, names: Number(stdout) > 0 }).toEqual({ entry, stderr: '', names: true });
    }
  });

  it('runs as a program: version, help, and a workflow from an agent turn to its output', async () => {
    const program = join(dir, 'node_modules/.bin/boardwalk-fleet');
    expect((await run(program, ['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect((await run(program, ['--help'])).stdout).toContain('Usage: boardwalk-fleet');
    const { stdout } = await run(program, ['dev', HELLO, '--host', '--json']);
    expect(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
      result: { status: 'completed' },
    });
  });
});
