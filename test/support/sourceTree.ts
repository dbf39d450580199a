// The source as a graph of files, for tests on the shape of the code. Reads imports of every form: values, types,
// re-exports, `import()` as a call and as a type.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

export const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));

export interface SourceImport {
  /** As written, e.g. `../contract/ids.js` or `node:fs`. */
  readonly specifier: string;
  /** Relative to the repository when it is one of ours, else null. */
  readonly file: string | null;
  /** `type`: gone when compiled; `lazy`: `import()` as a call; `value`: loaded with the file. */
  readonly form: 'value' | 'type' | 'lazy';
}

export interface SourceFile {
  /** Relative to the repository, e.g. `src/queue/lane.ts`. */
  readonly path: string;
  readonly text: string;
  readonly imports: readonly SourceImport[];
}

/** Files below `folder` whose name ends in one of `endings`, relative to the repository, sorted. */
export function filesBelow(folder: string, endings: readonly string[]): readonly string[] {
  return readdirSync(join(REPOSITORY, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && endings.some((ending) => entry.name.endsWith(ending)))
    .map((entry) => relative(REPOSITORY, join(entry.parentPath, entry.name)))
    .sort();
}

export function read(path: string): string {
  return readFileSync(join(REPOSITORY, path), 'utf8');
}

export function sourceFiles(folder = 'src'): readonly SourceFile[] {
  return filesBelow(folder, ['.ts']).map((path) => parseSource(path, read(path)));
}

export function parseSource(path: string, text: string): SourceFile {
  const imports: SourceImport[] = [];
  const add = (specifier: ts.Node | undefined, form: SourceImport['form']): void => {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return;
    imports.push({ specifier: specifier.text, file: resolve(path, specifier.text), form });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) {
      add(
        node.moduleSpecifier,
        node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword ? 'type' : 'value',
      );
    } else if (ts.isExportDeclaration(node)) {
      add(node.moduleSpecifier, node.isTypeOnly ? 'type' : 'value');
    } else if (ts.isImportTypeNode(node)) {
      add(ts.isLiteralTypeNode(node.argument) ? node.argument.literal : undefined, 'type');
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node.arguments[0], 'lazy');
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, false));
  return { path, text, imports };
}

/** Our own imports are relative and end in `.js`, which stands for the `.ts` beside it. */
function resolve(importer: string, specifier: string): string | null {
  if (!specifier.startsWith('.')) return null;
  return join(dirname(importer), specifier).replace(/\.js$/, '.ts');
}
