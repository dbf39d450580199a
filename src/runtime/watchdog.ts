// The first process of a container: it starts the runtime and holds the dead man's switch (design section 5). It guards
// against a runtime that can't hold the switch itself, because its event loop is busy or it was stopped: when the
// gateway is gone or the deadline passes, it ends the runtime and itself, and a container whose first process ends takes
// everything in it along. It knows nothing of the run.

import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseHandOver } from '../contract/handOver.js';
import { SecretSet } from '../redaction/secretSet.js';
import { Control } from './control.js';
import { readHandOverLine } from './handOverLine.js';
import { Watch } from './watch.js';

const RUNTIME = fileURLToPath(new URL('runtime.mjs', import.meta.url));
/** design section 11: the watchdog's. */
const EXIT_LOST = 70;

function log(message: string): void {
  process.stderr.write(`boardwalk-watchdog: ${message}\n`);
}

function lost(runtime: ChildProcess, why: string): never {
  runtime.kill('SIGKILL');
  log(`ended: ${why}`);
  process.exit(EXIT_LOST);
}

async function main(): Promise<void> {
  const line = await readHandOverLine(process.stdin);
  const { gateway, runId } = parseHandOver(line);
  const runtime = spawn(process.execPath, [RUNTIME], { stdio: ['pipe', 'inherit', 'inherit'] });
  runtime.on('error', (error) => {
    log(`the runtime can't be started: ${error.message}`);
    process.exit(1);
  });
  runtime.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal ?? 'SIGKILL']));
  // A runtime that dies before it has read its hand-over is an exit; the broken pipe adds nothing to that.
  runtime.stdin.on('error', () => undefined);
  runtime.stdin.end(`${line}\n`);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => runtime.kill(signal));
  const secrets = new SecretSet();
  secrets.add(gateway.bearer);
  const onLost = (why: string): never => lost(runtime, why);
  const control = new Control({
    ...gateway,
    runId,
    secrets,
    onFenced: () => onLost('this attempt no longer owns its run'),
  });
  // A wish to stop is the runtime's to hear.
  new Watch({ control, onStop: () => undefined, onLost }).start();
}

process.stderr.on('error', () => undefined);
main().catch((error: unknown) => {
  log(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
  process.exit(1);
});
