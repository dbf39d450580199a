import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/** What the sandbox loads before its first row (design: a validation library costs more than Node's own start). */
const BOOT_PATH = [
  'callPolicy',
  'cursors',
  'eventKinds',
  'fleetCalls',
  'fold',
  'handOver',
  'hostFrames',
  'ids',
  'inference',
  'inferenceCall',
  'json',
  'lines',
  'manifest',
  'operatorError',
  'reasoning',
  'runAnswers',
  'runFatal',
  'wireError',
];

/** Modules that a file needs at run time; type-only imports are gone by then. */
function runtimeImports(name: string): readonly string[] {
  const source = readFileSync(new URL(`../../../src/contract/${name}.ts`, import.meta.url), 'utf8');
  const statements = source.matchAll(/^(?:import|export) (?!type )(?:[^;]*? from )?'([^']+)';/gm);
  return [...statements].map(([, specifier]) => specifier ?? '');
}

function allImports(name: string, seen = new Set<string>()): ReadonlySet<string> {
  for (const specifier of runtimeImports(name)) {
    if (seen.has(specifier)) continue;
    seen.add(specifier);
    const local = /^\.\/(\w+)\.js$/.exec(specifier)?.[1];
    if (local !== undefined) allImports(local, seen);
  }
  return seen;
}

describe('the boot path of a sandbox', () => {
  it.each(BOOT_PATH)('loads no validation library through %s', (name) => {
    const foreign = [...allImports(name)].filter((specifier) => !specifier.startsWith('./'));
    expect(foreign.filter((specifier) => !specifier.startsWith('node:'))).toEqual([]);
  });

  it('is seen by this test at all', () => {
    expect(allImports('events')).toContain('zod');
  });
});
