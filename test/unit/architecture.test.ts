// The house rules that no compiler checks: who may import whom (docs/architecture.md), and what a file may look like.

import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesBelow, parseSource, read, sourceFiles, type SourceFile } from '../support/sourceTree.js';

/** Arrows go downwards only, and rooms of one floor never import each other. */
const FLOORS: Readonly<Record<string, number>> = {
  // The package's own door, src/index.ts.
  '': 5,
  cli: 4,
  poller: 3,
  executor: 3,
  events: 3,
  ops: 3,
  queue: 2,
  platform: 2,
  runtime: 2,
  dev: 2,
  contract: 1,
  redaction: 1,
  waiting: 1,
};

/** The runtime ships alone into a sandbox: its bundle has these and Node. */
const PACKAGES_OF_THE_RUNTIME = ['tar'];

const PACKAGE_DOOR = 'src/index.ts';
const NO_ROOM = 'none';
/** What the package exports: for programs outside. */
const DOORS = /^src\/(?:\w+\/)?index\.ts$/;

/** What a sandbox starts. */
const ENTRIES_OF_A_SANDBOX = ['src/runtime/main.ts', 'src/runtime/watchdog.ts'];

/** They would cost more than bare Node's own start (design: keep the boot path of a sandbox light). */
const TOO_HEAVY_TO_BOOT_WITH = ['zod', 'undici', 'pino', 'ioredis', 'bullmq'];

const NAMES_THAT_SAY_NOTHING =
  /^(?:utils?|helpers?|common|misc|managers?|services?|shared)\.ts$|(?:Utils?|Helpers?|Manager|Service)\.ts$/;

const MAX_LINES = 400;

const FILES = sourceFiles();
const BY_PATH = new Map(FILES.map((file) => [file.path, file]));

describe('floors', () => {
  it('every file lives in a room', () => {
    expect(FILES.map((file) => file.path).filter((path) => FLOORS[roomOf(path)] === undefined)).toEqual([]);
  });

  it('imports go down a floor or stay in their room, types and lazy imports too', () => {
    const wrong = FILES.flatMap((file) =>
      file.imports.flatMap(({ file: target }) => {
        if (target === null || mayImport(file.path, target)) return [];
        return [`${file.path} imports ${target}`];
      }),
    );
    expect(wrong).toEqual([]);
  });

  it('imports of our own files name files that exist', () => {
    const dangling = FILES.flatMap((file) =>
      file.imports
        .filter(({ file: target }) => target !== null && !BY_PATH.has(target))
        .map(({ specifier }) => `${file.path} imports ${specifier}`),
    );
    expect(dangling).toEqual([]);
  });

  it('the doors of the package are for programs outside: nothing in here uses them', () => {
    const users = FILES.flatMap((file) =>
      file.imports
        .filter(({ file: target }) => target !== null && DOORS.test(target))
        .map(({ specifier }) => `${file.path} imports ${specifier}`),
    );
    expect(users).toEqual([]);
  });

  it('no file is part of a circle of imports', () => {
    expect(circles(FILES)).toEqual([]);
  });

  it('the runtime needs Node and its few packages only, and nothing heavy to start', () => {
    const runtime = FILES.filter((file) => roomOf(file.path) === 'runtime');
    const foreign = runtime.flatMap((file) =>
      file.imports
        .filter(({ specifier, form }) => form !== 'type' && isForeign(specifier))
        .map(({ specifier }) => `${file.path} imports ${specifier}`),
    );
    expect(foreign).toEqual([]);
    const heavy = [...loadedWith(runtime.filter(({ path }) => ENTRIES_OF_A_SANDBOX.includes(path)))].flatMap(
      (file) =>
        file.imports
          .filter(
            ({ specifier, form }) =>
              form === 'value' && TOO_HEAVY_TO_BOOT_WITH.includes(packageOf(specifier)),
          )
          .map(({ specifier }) => `${file.path} imports ${specifier}`),
    );
    expect(heavy).toEqual([]);
  });
});

describe('files', () => {
  it('end the process only in cli and runtime', () => {
    const offenders = FILES.filter(({ text }) => /\bprocess\.(?:exit|abort|reallyExit)\(/.test(text))
      .map((file) => file.path)
      .filter((path) => !['cli', 'runtime'].includes(roomOf(path)));
    expect(offenders).toEqual([]);
  });

  it('say with their name what they do', () => {
    expect(
      FILES.map((file) => file.path).filter((path) => NAMES_THAT_SAY_NOTHING.test(basename(path))),
    ).toEqual([]);
  });

  it(`are a thought each: at most ${MAX_LINES} lines`, () => {
    const long = FILES.map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }));
    expect(long.filter(({ lines }) => lines > MAX_LINES)).toEqual([]);
  });

  it('open with what they are for', () => {
    const silent = FILES.filter(({ text }) => !/^(?:#!.*\n)?\/[/*]/.test(text)).map((file) => file.path);
    expect(silent).toEqual([]);
  });

  it('in Lua open with what goes in and comes out', () => {
    expect(filesBelow('src', ['.lua']).filter((path) => !/^--(?:\[\[)?\s*\S.*/.test(read(path)))).toEqual([]);
  });

  it('leave nothing for later in a comment, and skip no test', () => {
    const code = [
      ...filesBelow('src', ['.ts', '.lua']),
      ...filesBelow('test', ['.ts']),
      ...filesBelow('scripts', ['.mjs']),
    ];
    expect(code.filter((path) => /\b(?:TO(?:DO)|FIX(?:ME))\b/.test(read(path)))).toEqual([]);
    const tests = filesBelow('test', ['.test.ts']);
    expect(
      tests.filter((path) => /\b(?:it|test|describe)(?:\.\w+)*\.(?:skip|only|todo)\b/.test(read(path))),
    ).toEqual([]);
  });
});

describe('these checks', () => {
  it('see imports of every form', () => {
    const { imports } = parseSource(
      'src/queue/example.ts',
      `import { a } from '../contract/a.js';
       import type { B } from '../contract/b.js';
       export * from './c.js';
       export type { D } from './d.js';
       const e = await import('./e.js');
       type F = import('./f.js').F;
       import 'node:fs';`,
    );
    expect(imports.map(({ file, specifier, form }) => [file ?? specifier, form])).toEqual([
      ['src/contract/a.ts', 'value'],
      ['src/contract/b.ts', 'type'],
      ['src/queue/c.ts', 'value'],
      ['src/queue/d.ts', 'type'],
      ['src/queue/e.ts', 'lazy'],
      ['src/queue/f.ts', 'type'],
      ['node:fs', 'value'],
    ]);
  });

  it('know a step up, a step aside and a circle', () => {
    expect(mayImport('src/executor/a.ts', 'src/queue/b.ts')).toBe(true);
    expect(mayImport('src/executor/a.ts', 'src/executor/gateway/b.ts')).toBe(true);
    expect(mayImport('src/executor/a.ts', 'src/poller/b.ts')).toBe(false);
    expect(mayImport('src/queue/a.ts', 'src/executor/b.ts')).toBe(false);
    expect(mayImport('src/runtime/a.ts', 'src/platform/b.ts')).toBe(false);
    expect(mayImport('src/contract/a.ts', 'src/redaction/b.ts')).toBe(false);
    expect(mayImport('src/cli/a.ts', 'test/support/b.ts')).toBe(false);
    const ring = ['a', 'b', 'c'].map((name, index, all) =>
      parseSource(`src/queue/${name}.ts`, `import type { X } from './${all[(index + 1) % 3]}.js';`),
    );
    expect(circles(ring)).toEqual(['src/queue/a.ts > src/queue/b.ts > src/queue/c.ts > src/queue/a.ts']);
    expect(circles(ring.slice(0, 2))).toEqual([]);
  });
});

/** `src/queue/lua/x.ts` is in the room `queue`. */
function roomOf(path: string): string {
  const [top, room, ...rest] = path.split('/');
  if (path === PACKAGE_DOOR) return '';
  return top === 'src' && rest.length > 0 ? (room ?? NO_ROOM) : NO_ROOM;
}

function mayImport(importer: string, target: string): boolean {
  const [from, to] = [roomOf(importer), roomOf(target)];
  if (from === to) return true;
  return (FLOORS[to] ?? Number.POSITIVE_INFINITY) < (FLOORS[from] ?? 0);
}

function isForeign(specifier: string): boolean {
  if (specifier.startsWith('.') || specifier.startsWith('node:')) return false;
  return !PACKAGES_OF_THE_RUNTIME.includes(packageOf(specifier));
}

/** `zod/v4` is the package `zod`, `@scope/name/sub` the package `@scope/name`. */
function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

/** Everything that is loaded when `entries` are: what only types or a later `import()` name is not. */
function loadedWith(entries: readonly SourceFile[]): ReadonlySet<SourceFile> {
  const loaded = new Set(entries);
  for (const file of loaded) {
    for (const { file: target, form } of file.imports) {
      const imported = target === null || form !== 'value' ? undefined : BY_PATH.get(target);
      if (imported !== undefined) loaded.add(imported);
    }
  }
  return loaded;
}

/** Each circle once, as the path that closes it. */
function circles(files: readonly SourceFile[]): readonly string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const found: string[] = [];
  const done = new Set<string>();
  const walk = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at !== -1) {
      found.push([...trail.slice(at), path].join(' > '));
      return;
    }
    if (done.has(path)) return;
    for (const { file } of byPath.get(path)?.imports ?? []) {
      if (file !== null) walk(file, [...trail, path]);
    }
    done.add(path);
  };
  for (const { path } of files) walk(path, []);
  return found;
}
