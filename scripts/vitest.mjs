// Runs vitest and reads what came of it from its own report.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const VITEST = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** How much of a failure's message is repeated at the end. */
const MESSAGE_LINES = 12;

/** @typedef {{ passed: number, failed: number, skipped: number }} Counts */

/**
 * A signal is the test run's to end by: it is handed on, and this resolves when that has ended.
 *
 * @param {string} node binary that runs it
 * @param {readonly string[]} args for vitest
 * @param {Readonly<Record<string, string>>} environment on top of this process's
 * @returns {Promise<{ status: number, counts: Counts | null, failures: string[] }>}
 */
export async function runVitest(node, args, environment = {}) {
  const reportDir = mkdtempSync(join(tmpdir(), 'bwf-report-'));
  const reportFile = join(reportDir, 'report.json');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
  const child = spawn(node, [VITEST, 'run', ...reporters, ...args], {
    stdio: 'inherit',
    env: { ...process.env, ...environment },
  });
  const handOn = (signal) => child.kill(signal);
  for (const signal of SIGNALS) process.on(signal, handOn);
  const status = await new Promise((resolve) => {
    child.once('error', () => resolve(1));
    child.once('exit', (code) => resolve(code ?? 1));
  });
  for (const signal of SIGNALS) process.off(signal, handOn);
  const report = readReport(reportFile);
  rmSync(reportDir, { recursive: true, force: true });
  return { status, ...report };
}

/** @returns {{ counts: Counts | null, failures: string[] }} */
function readReport(file) {
  try {
    const report = JSON.parse(readFileSync(file, 'utf8'));
    const failures = report.testResults.filter(({ status }) => status === 'failed').flatMap(failuresOf);
    return {
      counts: {
        passed: report.numPassedTests,
        failed: failures.length,
        skipped: report.numPendingTests + report.numTodoTests,
      },
      failures,
    };
  } catch {
    return { counts: null, failures: [] };
  }
}

// A file that can't be loaded, or cleaned up after, may have no test that failed, but it is a failure.
function failuresOf({ name, message, assertionResults }) {
  const failed = assertionResults.filter(({ status }) => status === 'failed');
  if (failed.length === 0) return [told(name, message)];
  return failed.map(({ fullName, failureMessages }) =>
    told(`${name}: ${fullName}`, failureMessages.join('\n')),
  );
}

function told(where, message) {
  return `${where}\n${message.split('\n').slice(0, MESSAGE_LINES).join('\n')}`;
}
