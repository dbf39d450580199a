// `npm test`: builds, installs a Redis server where it can, runs every vitest project, and closes with the line
// `N passed, N failed` taken from vitest's own report. Arguments go to vitest.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { needRedisServer } from './needs.mjs';

needRedisServer();
run(process.execPath, [join(import.meta.dirname, 'build.mjs')]);

const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
const reportDir = mkdtempSync(join(tmpdir(), 'bwf-report-'));
const reportFile = join(reportDir, 'report.json');
const { status } = spawnSync(
  process.execPath,
  [
    vitest,
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${reportFile}`,
    ...process.argv.slice(2),
  ],
  { stdio: 'inherit' },
);
const counts = readCounts(reportFile);
rmSync(reportDir, { recursive: true, force: true });
if (counts === null) {
  process.stderr.write('vitest left no report\n');
  process.exit(status || 1);
}
// In CI a test that is skipped has not shown what it stands for.
const skippedInCi = process.env.CI && counts.skipped > 0;
if (skippedInCi)
  process.stderr.write(`${counts.skipped} tests were skipped, which counts as a failure in CI\n`);
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed${skipped}\n`);
process.exit(status !== 0 ? (status ?? 1) : skippedInCi || counts.failed > 0 || counts.passed === 0 ? 1 : 0);

function readCounts(file) {
  try {
    const report = JSON.parse(readFileSync(file, 'utf8'));
    // A file that can't be loaded has no tests to count, but it is a failure.
    const broken = report.testResults.filter(
      (f) => f.status === 'failed' && f.assertionResults.length === 0,
    ).length;
    return {
      passed: report.numPassedTests,
      failed: report.numFailedTests + broken,
      skipped: report.numPendingTests + report.numTodoTests,
    };
  } catch {
    return null;
  }
}

function run(command, args) {
  const { status: code } = spawnSync(command, args, { stdio: 'inherit' });
  if (code !== 0) process.exit(code ?? 1);
}
