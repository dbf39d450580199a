// Signals of a long-lived command: the first asks for an orderly end, the second for a quick one, the third ends the
// process. Guards against a process that a signal can't end, whatever hangs: before it serves (a start that waits for a
// disk or a Redis), after a second signal and after a fatal condition a clock runs, and at its end there is no more
// waiting. That is the last resort: nobody cleans up behind it, so everything else must have had its time before.

import { EXIT } from './program.js';

/** What an orderly end may take after a second signal; the roles have a little less. */
export const HURRY_MS = 10_000;
const LAST_RESORT_MS = HURRY_MS + 1_500;
/** There is nothing to drain before a command serves, but what was opened should be closed. */
const START_GRACE_MS = 3_000;

export interface Shutdown {
  /** Resolves with the exit code that the first reason to end asks for. */
  readonly asked: Promise<number>;
  /** Whether a signal has come. */
  readonly signalled: boolean;
  /** Aborts with the second signal. */
  readonly hurried: AbortSignal;
  /** The same as a first signal, for a reason of our own; the first reason stays. */
  ask(exitCode: number): void;
  /** The start is over: from here the first signal waits for the drain. */
  serving(): void;
  /** Ends the process with this code if it still lives when all time for an orderly end is over, after the last words. */
  lastResort(exitCode: number, lastWords: () => void): void;
  dispose(): void;
}

export interface ShutdownOptions {
  /** @default the process */
  readonly signals?: NodeJS.EventEmitter;
  /** @default process.exit */
  readonly exit?: (code: number) => void;
}

export function watchSignals(options: ShutdownOptions = {}): Shutdown {
  const { signals = process, exit = (code: number): void => process.exit(code) } = options;
  let ask: (exitCode: number) => void = () => undefined;
  const asked = new Promise<number>((resolve) => {
    ask = resolve;
  });
  const hurry = new AbortController();
  let isServing = false;
  let count = 0;
  const exitWithin = (ms: number, code: number, lastWords?: () => void): void => {
    const end = (): void => {
      lastWords?.();
      exit(code);
    };
    // It outlives `dispose` on purpose, and a process that has nothing left to do doesn't wait for it.
    setTimeout(end, ms).unref();
  };
  const onSignal = (): void => {
    count += 1;
    if (count > 2) return exit(EXIT.secondSignal);
    if (count === 2) {
      hurry.abort();
      exitWithin(LAST_RESORT_MS, EXIT.secondSignal);
      return;
    }
    ask(EXIT.done);
    if (!isServing) exitWithin(START_GRACE_MS, EXIT.secondSignal);
  };
  signals.on('SIGINT', onSignal);
  signals.on('SIGTERM', onSignal);
  return {
    asked,
    get signalled() {
      return count > 0;
    },
    hurried: hurry.signal,
    ask: (exitCode) => ask(exitCode),
    serving: () => {
      isServing = true;
    },
    lastResort: (exitCode, lastWords) => exitWithin(LAST_RESORT_MS, exitCode, lastWords),
    dispose: () => {
      signals.off('SIGINT', onSignal);
      signals.off('SIGTERM', onSignal);
    },
  };
}

/** Calls back when the signal falls, at once if it has fallen already. */
export function whenAborted(signal: AbortSignal, work: () => void): void {
  if (signal.aborted) work();
  else signal.addEventListener('abort', work, { once: true });
}
