// `npm run fleet:smoke -- --runs 200`: a small fleet of separate processes executes real runs, and the control plane's
// own report says whether anything was lost, repeated or reordered. Exits 1 when it was. With `--sandbox container`, each
// run has a container of the image that `npm run image:local` makes, and none may be left at the end.

import { parseArgs } from 'node:util';
import { containersBelow, engineEnvironment, testEngine } from '../support/engine.js';
import { startLocalFleet } from '../support/localFleet.js';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '200' },
    executors: { type: 'string', default: '2' },
    slots: { type: 'string', default: '4' },
    sandbox: { type: 'string', default: 'process' },
  },
});
const runs = Number(values.runs);
const inContainers = values.sandbox === 'container';
if (!inContainers && values.sandbox !== 'process')
  throw new Error(`--sandbox: ${JSON.stringify(values.sandbox)} must be process or container`);

const SOURCE = `
import { agent, phase } from '@boardwalk-labs/workflow';
export default async function run(input) {
  phase('Work');
  const text = await agent('Say something about ' + input.topic, { builtins: 'none' });
  return { characters: text.length };
}
`;

const fleet = await startLocalFleet({
  executors: Number(values.executors),
  slots: Number(values.slots),
  ...(inContainers ? { sandbox: 'container', environment: { ...engineEnvironment() } } : {}),
});
let failed = false;
try {
  const began = performance.now();
  const ids = await fleet.admin.createRuns({ source: SOURCE, input: { topic: 'tides' }, count: runs });
  const views = await fleet.admin.finished(ids);
  const seconds = (performance.now() - began) / 1_000;
  const report = await fleet.admin.report();
  const completed = views.filter((view) => view.status === 'completed').length;
  const facts = {
    runs,
    completed,
    seconds: Number(seconds.toFixed(1)),
    runs_per_second: Number((runs / seconds).toFixed(1)),
    double_finalized: report.double_finalized,
    cursor_regressions: report.cursor_regressions,
    duplicate_rows: report.duplicate_rows,
    expired_leases: report.expired_leases,
    attempts_over_one: views.filter((view) => view.attempts > 1).length,
  };
  process.stdout.write(`${JSON.stringify(facts, null, 2)}\n`);
  const first = views.find((view) => view.status !== 'completed');
  if (first !== undefined)
    process.stdout.write(`first that did not complete: ${JSON.stringify(first.error)}\n`);
  failed =
    completed !== runs || report.double_finalized + report.cursor_regressions + report.expired_leases > 0;
} finally {
  const codes = await fleet.stop();
  process.stdout.write(`exit codes: ${JSON.stringify(codes)}\n`);
  if (Object.values(codes).some((code) => code !== 0)) failed = true;
  if (inContainers) {
    const left = (await containersBelow(await testEngine(), fleet.dir)).length;
    process.stdout.write(`containers_left: ${left}\n`);
    if (left > 0) failed = true;
  }
}
process.stdout.write(failed ? 'smoke: FAILED\n' : 'smoke: ok\n');
process.exitCode = failed ? 1 : 0;
