// The run process: reads its hand-over from standard input, runs one run, and says by its exit code how that went. It
// guards the order of last things: what the program still does is ended first, what was seen of it leaves next, and an
// attempt that nobody vouches for any more ends at once.

import { EXIT_UNREACHABLE, parseHandOver } from '../contract/handOver.js';
import { redact } from '../redaction/redact.js';
import { SecretSet } from '../redaction/secretSet.js';
import { waitFor } from '../waiting/waiting.js';
import { Control, GatewayError, UnexpectedAnswer } from './control.js';
import { readHandOverLine } from './handOverLine.js';
import { Lifecycle } from './lifecycle.js';
import { ProcessGroups } from './processGroups.js';
import { RunStop } from './runStop.js';
import { Watch } from './watch.js';

/** design section 11: the watchdog's. */
const EXIT_LOST = 70;
const EXIT_BY_SIGNAL = { SIGTERM: 143, SIGINT: 130 } as const;
/** For rows that are still on their way when the process has to go. */
const LAST_ROWS_MS = 5_000;

const secrets = new SecretSet();
const groups = new ProcessGroups();
const leaving = new AbortController();
let lifecycle: Lifecycle | undefined;
let running: Promise<unknown> = Promise.resolve();
let going = false;

function log(message: string): void {
  process.stderr.write(`${redact(`boardwalk-runtime: ${message}`, secrets).replaceAll('\n', ' ')}\n`);
}

function exit(code: number): never {
  groups.signalAll('SIGKILL');
  process.exit(code);
}

/** Nobody vouches for this attempt: nothing more may happen, in here or in the world. */
function lost(why: string): never {
  log(`ended: ${why}`);
  exit(EXIT_LOST);
}

/** The program is told to go first; then its last rows get a moment to leave. A second reason doesn't wait any more. */
async function leave(code: number): Promise<void> {
  if (going) exit(code);
  going = true;
  leaving.abort();
  // With a program alive, the run's own end comes after everything that it still says.
  const saidAll = groups.isEmpty ? lifecycle?.drained() : running.catch(() => undefined);
  groups.signalAll('SIGTERM');
  if (saidAll !== undefined) await waitFor(saidAll, { ms: LAST_ROWS_MS });
  exit(code);
}

async function main(): Promise<void> {
  const handOver = parseHandOver(await readHandOverLine(process.stdin));
  secrets.add(handOver.gateway.bearer);
  const control = new Control({
    ...handOver.gateway,
    runId: handOver.runId,
    secrets,
    onFenced: () => lost('this attempt no longer owns its run'),
  });
  const stop = new RunStop();
  const watch = new Watch({ control, onStop: (reason) => stop.stop(reason), onLost: lost });
  const debug = handOver.debug ? log : (): void => undefined;
  watch.start();
  lifecycle = new Lifecycle({
    handOver,
    env: process.env,
    control,
    secrets,
    stop,
    groups,
    log,
    leaving: leaving.signal,
    onLost: lost,
  });
  const run = lifecycle.run();
  running = run;
  const end = await run;
  // The gateway may close its door as soon as it has the finalize; that is no loss.
  watch.stop();
  debug(end === 'finalized' ? 'the run is finalized' : 'the run has another owner, or is over');
  control.close();
  if (!going) exit(0);
}

for (const [signal, code] of Object.entries(EXIT_BY_SIGNAL)) {
  process.on(signal, () => {
    log(`ended by ${signal}`);
    void leave(code);
  });
}
// An executor that is gone reads no log; the watch says so in its own way.
process.stderr.on('error', () => undefined);
process.on('uncaughtException', (error) => {
  log(error.stack ?? error.message);
  void leave(1);
});

main().catch((error: unknown) => {
  if (going) return;
  log(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
  const isPassing = error instanceof GatewayError || (error instanceof UnexpectedAnswer && error.isPassing);
  void leave(isPassing ? EXIT_UNREACHABLE : 1);
});
