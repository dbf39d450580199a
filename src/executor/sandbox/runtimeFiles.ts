// Where the files are that ship into a sandbox. They are built, not compiled in place, so a source tree that was
// never built must be told so at start and not by the first run that fails.

import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OperatorError } from '../../contract/operatorError.js';

export interface RuntimeFiles {
  /** The one bundled file that is the run process. */
  readonly runtimePath: string;
  /** Folder of our `@boardwalk-labs/workflow`, linked into every program. */
  readonly sdkDir: string;
}

/** From `src/executor/sandbox` and from `dist/executor/sandbox` alike, the package is three levels up. */
const PACKAGE_ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * @throws OperatorError `RUNTIME_MISSING` when one of the files can't be read.
 */
export function findRuntimeFiles(packageRoot: string = PACKAGE_ROOT): RuntimeFiles {
  const sandboxDir = join(packageRoot, 'dist', 'sandbox');
  const files: RuntimeFiles = {
    runtimePath: join(sandboxDir, 'runtime.mjs'),
    sdkDir: join(sandboxDir, 'sdk'),
  };
  mustRead(files.runtimePath);
  mustRead(join(files.sdkDir, 'package.json'));
  return files;
}

function mustRead(path: string): void {
  try {
    accessSync(path, constants.R_OK);
  } catch (cause) {
    throw runtimeMissing(path, cause);
  }
}

export function runtimeMissing(path: string, cause: unknown): OperatorError {
  return new OperatorError('RUNTIME_MISSING', `The runtime of the sandbox can't be read: ${path}`, {
    hint: 'In a source tree, run `npm run build`. In an installed package, install it again.',
    cause,
  });
}
