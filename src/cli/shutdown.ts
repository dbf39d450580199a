// Signals of a long-lived command: the first asks for a drain, the second ends what is left at once.

import { EXIT } from './program.js';

export interface Shutdown {
  /** Resolves with the exit code that the first reason to end asks for. */
  readonly asked: Promise<number>;
  /** The same for a reason of our own; the first one stays. */
  ask(exitCode: number): void;
  /** Set once a second signal has come. */
  readonly hurried: AbortSignal;
  dispose(): void;
}

export function watchSignals(): Shutdown {
  let ask: (exitCode: number) => void = () => undefined;
  const asked = new Promise<number>((resolve) => {
    ask = resolve;
  });
  const hurry = new AbortController();
  let signals = 0;
  const onSignal = (): void => {
    signals += 1;
    if (signals === 1) ask(EXIT.done);
    else hurry.abort();
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return {
    asked,
    ask: (exitCode) => ask(exitCode),
    hurried: hurry.signal,
    dispose: () => {
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
    },
  };
}
