// What a person finds in the repository: the files that the text speaks of are there, and so are the scripts.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesBelow, read, REPOSITORY } from '../support/sourceTree.js';

/** Our own pages, and the protocol that ships with the project. */
const PAGES = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...filesBelow('docs', ['.md'])];

const SCRIPTS = Object.keys(
  (JSON.parse(read('package.json')) as { scripts: Record<string, string> }).scripts,
);

describe('the repository', () => {
  it('stands alone: license, protocol and vectors are part of it', () => {
    expect(read('LICENSE')).toContain('Apache License');
    for (const page of ['pool', 'run-control', 'inference', 'events', 'program', 'sdk', 'agent-loop']) {
      expect(read(`docs/protocol/${page}.md`).length).toBeGreaterThan(1_000);
    }
    for (const name of ['pool-contract', 'inference-frames', 'run-events', 'host-protocol', 'reset-fold']) {
      expect(() => JSON.parse(read(`test/vectors/${name}.json`)) as unknown).not.toThrow();
    }
  });

  it.each(PAGES)('has what %s links to', (page) => {
    const targets = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
    const broken = targets
      .filter((target) => !/^(?:https?:|mailto:|#)/.test(target))
      .map((target) => target.replace(/#.*$/, ''))
      .filter((target) => !existsSync(join(REPOSITORY, dirname(page), target)));
    expect(broken).toEqual([]);
  });

  it.each(PAGES)('has the scripts that %s names', (page) => {
    const named = [...read(page).matchAll(/npm run ([\w:-]+)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !SCRIPTS.includes(name))).toEqual([]);
  });

  it('has the files that SECURITY.md and CONTRIBUTING.md name', () => {
    const named = [read('SECURITY.md'), read('CONTRIBUTING.md')].flatMap((text) =>
      [...text.matchAll(/`((?:src|test|docs|\.ci)\/[\w./-]+)`/g)].map(([, path = '']) => path),
    );
    expect(named.filter((path) => !existsSync(join(REPOSITORY, path)))).toEqual([]);
  });

  it('numbers its decisions without a gap', () => {
    const numbers = filesBelow('docs/decisions', ['.md']).map((path) =>
      Number(/(\d{4})-[^/]+$/.exec(path)?.[1]),
    );
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  });
});
