// `key generate`: the one secret that all processes of a fleet share. It is never shown where a file can take it.

import { writeFile } from 'node:fs/promises';
import { OperatorError } from '../../contract/operatorError.js';
import { generateFleetKey } from '../../queue/seal.js';
import { EXIT, type CommandRun } from '../program.js';
import type { SettingOf } from '../settings.js';

/** To a file that only its owner can read, or on standard output. */
export const runKeyGenerate: CommandRun<SettingOf<'keyGenerate'>> = async (values, _input, terminal) => {
  const line = `${generateFleetKey()}\n`;
  if (values.out === undefined) {
    terminal.stdout.write(line);
    return EXIT.done;
  }
  try {
    await writeFile(values.out, line, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST';
    throw new OperatorError(
      'KEY_FILE',
      exists
        ? `${values.out} exists already.`
        : `${values.out} can't be written (${String(error instanceof Error ? error.message : error)}).`,
      {
        hint: exists
          ? 'A fleet key is never overwritten: choose another name.'
          : 'Choose a directory that you may write to.',
        cause: error,
      },
    );
  }
  terminal.stderr.write(
    `fleet key written to ${values.out}: give it to every process with --fleet-key-file\n`,
  );
  return EXIT.done;
};
