// `npm test`: builds, gets a Redis server and a container engine where it can, runs every vitest project, the unit tests
// on Node.js 24 too, and closes with the line `N passed, N failed` taken from vitest's own reports.
//
//   node scripts/test.mjs [--node24] [arguments for vitest]    --node24: only the unit tests on Node.js 24
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { needEngine } from './engine.mjs';
import { needRedisServer } from './needs.mjs';
import { node24 } from './node24.mjs';
import { needRunImage } from './runImage.mjs';
import { runVitest } from './vitest.mjs';

const args = process.argv.slice(2);
const onlyNode24 = args[0] === '--node24';
const projects = projectsOf(args);

const results = [];
if (!onlyNode24) {
  needRedisServer();
  build();
  results.push(
    await withEngine(async (flags, environment) =>
      runVitest(process.execPath, [...flags, ...args], environment),
    ),
  );
}
if (onlyNode24 || (args.length === 0 && !process.versions.node.startsWith('24.'))) {
  process.stdout.write('\nThe unit tests on Node.js 24:\n');
  results.push(await runVitest(node24(), ['--project', 'unit', ...args.slice(onlyNode24 ? 1 : 0)]));
}
process.exit(close());

/** Which projects the arguments name; `null`: all. */
function projectsOf(given) {
  const named = given.flatMap((arg, index) => {
    if (arg.startsWith('--project=')) return [arg.slice('--project='.length)];
    return given[index - 1] === '--project' ? [arg] : [];
  });
  return named.length === 0 ? null : named;
}

/** @param {(flags: string[], environment: Record<string, string>) => Promise<unknown>} run */
async function withEngine(run) {
  if (projects !== null && !projects.includes('container')) return run([], {});
  const engine = await needEngine();
  if (engine === null) {
    const what =
      'NO CONTAINER ENGINE: the tests with real containers do NOT run (start Docker or Podman, or set DOCKER_HOST)';
    process.stderr.write(`\n${what}\n\n`);
    if (process.env.CI || projects !== null) process.exit(1);
    return run(['--project', 'unit', '--project', 'integration'], {});
  }
  try {
    const image = await needRunImage(engine.address);
    return await run([], { DOCKER_HOST: engine.address, BWF_TEST_IMAGE: image });
  } finally {
    await engine.stop();
  }
}

function build() {
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, 'build.mjs')], {
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}

/** Prints what failed once more, since a log's end is what people are shown, and the closing line. @returns the exit code */
function close() {
  for (const failure of results.flatMap(({ failures }) => failures))
    process.stderr.write(`\nFAILED ${failure}\n`);
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const { counts } of results) {
    if (counts === null) {
      process.stderr.write('vitest left no report\n');
      sum.failed += 1;
      continue;
    }
    for (const key of Object.keys(sum)) sum[key] += counts[key];
  }
  // In CI a test that is skipped has not shown what it stands for.
  const skippedInCi = Boolean(process.env.CI) && sum.skipped > 0;
  if (skippedInCi)
    process.stderr.write(`${sum.skipped} tests were skipped, which counts as a failure in CI\n`);
  process.stdout.write(
    `${sum.passed} passed, ${sum.failed} failed${sum.skipped > 0 ? `, ${sum.skipped} skipped` : ''}\n`,
  );
  const wrong = results.find(({ status }) => status !== 0);
  if (wrong !== undefined) return wrong.status;
  return skippedInCi || sum.failed > 0 || sum.passed === 0 ? 1 : 0;
}
