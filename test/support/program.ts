// A process of a test: a TypeScript file that runs on its own, so that it can be killed, frozen, and seen to end.

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface TestProgram {
  readonly process: ChildProcessWithoutNullStreams;
  /** The next line of its standard output. */
  line(): Promise<string>;
  /** How it ended: exit code, or signal. */
  readonly ended: Promise<number | string | null>;
}

/** Starts a file of `test/support/programs`. */
export function startProgram(name: string, ...args: readonly string[]): TestProgram {
  const file = fileURLToPath(new URL(`programs/${name}.ts`, import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', file, ...args]);
  let errors = '';
  child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    process: child,
    ended: once(child, 'close').then(() => child.exitCode ?? child.signalCode),
    line: async () => {
      const next = await lines.next();
      if (next.done === true) throw new Error(`${name} ended before it said anything more: ${errors}`);
      return next.value;
    },
  };
}
