// What infra/README.md tells an operator exists: files, settings, services.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { unknownVariables } from '../../../src/cli/givenSettings.js';
import { variablesOf } from '../../support/composeFile.js';
import { read, REPOSITORY } from '../../support/sourceTree.js';

const page = read('infra/README.md');

function found(pattern: RegExp): readonly string[] {
  return [...page.matchAll(pattern)].map(([, first = '']) => first);
}

it('links to files that are there', () => {
  const targets = found(/\]\(([^)\s#]+)\)/g).filter((target) => !target.startsWith('http'));
  expect(targets.length).toBeGreaterThan(0);
  expect(targets.filter((target) => !existsSync(join(REPOSITORY, 'infra', target)))).toEqual([]);
});

it('names settings that the program has', () => {
  const named = found(/\b(BOARDWALK_FLEET_[A-Z_]+)/g);
  expect(unknownVariables(Object.fromEntries(named.map((name) => [name, 'x'])))).toEqual([]);
});

it('gives values only to variables that the compose file takes', () => {
  const given = found(/^([A-Z][A-Z_]+)=\S+ {2,}#/gm);
  expect(given.length).toBeGreaterThan(0);
  expect(given.filter((name) => !variablesOf('infra/compose.yaml').includes(name))).toEqual([]);
});
