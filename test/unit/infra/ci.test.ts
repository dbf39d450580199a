// The public CI workflow: what it runs is there, and it has no more rights and no more time than it needs.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { read, REPOSITORY } from '../../support/sourceTree.js';

const workflow = z
  .looseObject({
    permissions: z.record(z.string(), z.string()),
    concurrency: z.looseObject({ group: z.string() }),
    jobs: z.record(
      z.string(),
      z.looseObject({
        'timeout-minutes': z.number(),
        env: z.record(z.string(), z.string()).optional(),
        strategy: z
          .object({ matrix: z.object({ node: z.array(z.number()) }) })
          .loose()
          .optional(),
        steps: z.array(
          z.looseObject({
            uses: z.string().optional(),
            run: z.string().optional(),
            with: z.record(z.string(), z.unknown()).optional(),
          }),
        ),
      }),
    ),
  })
  .parse(parse(read('.github/workflows/ci.yaml')));

const jobs = Object.values(workflow.jobs);
const steps = jobs.flatMap((job) => job.steps);
const commands = steps.flatMap(({ run }) => run ?? []);
const { scripts, engines } = JSON.parse(read('package.json')) as {
  readonly scripts: Record<string, string>;
  readonly engines: { readonly node: string };
};

it('runs only scripts that package.json has', () => {
  const named = commands.flatMap((run) =>
    [...run.matchAll(/npm (?:run )?([a-z][\w:-]*)/g)].map(([, name = '']) => name),
  );
  expect(named).toEqual(expect.arrayContaining(['ci', 'typecheck', 'lint', 'test']));
  expect(named.filter((name) => name !== 'ci' && scripts[name] === undefined)).toEqual([]);
});

it('names only files that are there', () => {
  const named = commands.flatMap((run) => run.match(/\binfra\/[\w./-]+/g) ?? []);
  expect(named).toHaveLength(3);
  expect(named.filter((path) => !existsSync(join(REPOSITORY, path)))).toEqual([]);
});

it('tests on the oldest Node.js that the package allows and on the one that programs are built for', () => {
  const oldest = Number(/\d+/.exec(engines.node)?.[0]);
  expect(workflow.jobs['test']?.strategy?.matrix.node).toEqual([oldest, 24]);
  // There a skipped test is a failure.
  expect(workflow.jobs['test']?.env).toEqual({ CI: 'true' });
});

it('may read and nothing else, leaves no credential behind, and ends', () => {
  expect(workflow.permissions).toEqual({ contents: 'read' });
  for (const job of jobs) {
    expect(job).not.toHaveProperty('permissions');
    expect(job['timeout-minutes']).toBeLessThanOrEqual(60);
  }
  for (const step of steps.filter(({ uses }) => uses?.startsWith('actions/checkout@')))
    expect(step.with).toMatchObject({ 'persist-credentials': false });
});

it('uses the actions of GitHub itself, each by its major version', () => {
  const used = steps.flatMap(({ uses }) => uses ?? []);
  expect(used.length).toBeGreaterThan(0);
  expect(used.filter((action) => !/^actions\/[a-z-]+@v\d+$/.test(action))).toEqual([]);
});
