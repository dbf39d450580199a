// Where the sandbox's files are looked for, and what is said when they were never built.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findRuntimeFiles } from '../../../../src/executor/sandbox/runtimeFiles.js';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'bwf-runtime-files-'));
  mkdirSync(join(root, 'dist/sandbox/sdk'), { recursive: true });
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

describe('the files of the sandbox', () => {
  it('are found below dist', () => {
    writeFileSync(join(root, 'dist/sandbox/runtime.mjs'), '');
    writeFileSync(join(root, 'dist/sandbox/sdk/package.json'), '{}');
    expect(findRuntimeFiles(root)).toEqual({
      runtimePath: join(root, 'dist/sandbox/runtime.mjs'),
      sdkDir: join(root, 'dist/sandbox/sdk'),
    });
  });

  it('are missing with a name and a way out when nothing was built', () => {
    expect(() => findRuntimeFiles(root)).toThrow(
      expect.objectContaining({
        code: 'RUNTIME_MISSING',
        message: expect.stringContaining('runtime.mjs') as string,
        hint: expect.stringContaining('npm run build') as string,
      }),
    );
  });

  it('are missing without the SDK too', () => {
    writeFileSync(join(root, 'dist/sandbox/runtime.mjs'), '');
    expect(() => findRuntimeFiles(root)).toThrow(
      expect.objectContaining({ message: expect.stringContaining('sdk') as string }),
    );
  });
});
