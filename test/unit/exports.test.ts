// The package's public face: package.json and the doors in `src` name the same entries, and whatever leaves through one
// says what it is for. A name without a word would be an accident and not a promise.

import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { filesBelow, read, REPOSITORY } from '../support/sourceTree.js';

const { exports, types } = JSON.parse(read('package.json')) as {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly types: string;
};
const DOORS = filesBelow('src', ['index.ts']).filter((path) => /^src\/(?:\w+\/)?index\.ts$/.test(path));

describe('the exports of the package', () => {
  it('are the doors of the source, each with its declarations first', () => {
    const expected = DOORS.map((path) => {
      const built = path.replace(/^src\//, './dist/').replace(/\.ts$/, '');
      return [entryOf(path), { types: `${built}.d.ts`, default: `${built}.js` }];
    });
    const { './package.json': own, ...entries } = exports;
    expect(own).toBe('./package.json');
    expect(entries).toEqual(Object.fromEntries(expected));
    for (const conditions of Object.values(entries)) {
      // A resolver takes the first condition that fits, and `default` fits everybody.
      expect(Object.keys(conditions as object)).toEqual(['types', 'default']);
    }
    expect(types).toBe('./dist/index.d.ts');
  });

  it('say what they are for, all of them', { timeout: 60_000 }, () => {
    const program = ts.createProgram(
      DOORS.map((path) => join(REPOSITORY, path)),
      { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023, types: ['node'], noEmit: true },
    );
    const checker = program.getTypeChecker();
    const isDocumented = (symbol: ts.Symbol): boolean => symbol.getDocumentationComment(checker).length > 0;
    const silent = DOORS.flatMap((path) => {
      const source = program.getSourceFile(join(REPOSITORY, path));
      const door = source === undefined ? undefined : checker.getSymbolAtLocation(source);
      if (door === undefined) return [`${path} exports nothing`];
      return checker
        .getExportsOfModule(door)
        .filter((name) => !isDocumented(name) && !isDocumented(declared(checker, name)))
        .map((name) => `${path}: ${name.name}`);
    });
    expect(silent).toEqual([]);
  });
});

/** `src/poller/index.ts` is the entry `./poller`. */
function entryOf(path: string): string {
  return path.replace(/^src/, '.').replace(/\/index\.ts$/, '');
}

/** A door only passes names on; what they are is said where they are declared. */
function declared(checker: ts.TypeChecker, name: ts.Symbol): ts.Symbol {
  return (name.flags & ts.SymbolFlags.Alias) === 0 ? name : checker.getAliasedSymbol(name);
}
