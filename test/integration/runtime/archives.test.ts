// What the runtime makes of versions and archives that can't be run: early failures with their codes, and nothing
// outside the run's own directories.

import { readdir } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { gzipSync } from 'node:zlib';
import { archiveOf, type Member, tarOf } from '../../unit/runtime/tarball.js';
import { finishedRun, type RunOptions } from './world.js';
import { json } from './testGateway.js';

const containing = (text: string): unknown => expect.stringContaining(text);

const ENTRY: Member = { path: 'index.mjs', content: 'export default () => 1' };

async function earlyFailure(
  options: RunOptions,
): Promise<{ readonly code: string; readonly message: string }> {
  const { code, gateway, leftovers } = await finishedRun(options);
  expect(code).toBe(0);
  expect(leftovers).toEqual([]);
  expect(gateway.bodiesOf('usage')).toEqual([]);
  const [finalize] = gateway.finalizes;
  expect(finalize?.status).toBe('failed');
  return (finalize?.output as { error: { code: string; message: string } }).error;
}

describe('a version that can not be run', () => {
  test('missing: INTERNAL_ERROR', async () => {
    const answers = { version: (_body: unknown, res: Parameters<typeof json>[0]) => json(res, 404, {}) };
    expect(await earlyFailure({ answers })).toMatchObject({ code: 'INTERNAL_ERROR' });
  });

  test('with a manifest that can not be read: INTERNAL_ERROR that names the field', async () => {
    const error = await earlyFailure({ manifest: { budget: { max_usd: 'lots' } } });
    expect(error).toMatchObject({
      code: 'INTERNAL_ERROR',
      message: containing('budget.max_usd'),
    });
  });

  test('whose archive can not be downloaded: PROGRAM_FETCH_FAILED', async () => {
    const answers = {
      '_fleet/program': (_body: unknown, res: Parameters<typeof json>[0]) => json(res, 404, {}),
    };
    expect(await earlyFailure({ answers })).toMatchObject({
      code: 'PROGRAM_FETCH_FAILED',
      message: containing('404'),
    });
  });

  test('whose archive has another digest: PROGRAM_INTEGRITY', async () => {
    const error = await earlyFailure({ digest: '0'.repeat(64) });
    expect(error).toMatchObject({ code: 'PROGRAM_INTEGRITY', message: containing('0000') });
  });

  test.each([
    // 75 tells the executor that it may pass, and that the run had no part in it.
    [500, 75],
    [429, 75],
    [400, 1],
  ])(
    'whose version answers %i is left to another attempt: no finalize, exit code %i',
    async (status, exitCode) => {
      const { code, gateway } = await finishedRun({
        answers: { version: (_body, res) => json(res, status, { error: {} }) },
      });
      expect({ code, finalizes: gateway.finalizes }).toEqual({ code: exitCode, finalizes: [] });
      expect(gateway.rows).toHaveLength(1);
    },
  );

  test('claimed by another owner: nothing is sent, exit code 0', async () => {
    const { code, gateway } = await finishedRun({ answers: { claim: (_body, res) => json(res, 409, {}) } });
    expect(code).toBe(0);
    expect(gateway.calls.map((call) => call.path).sort()).toEqual(['_fleet/watch', 'claim']);
  });

  test.each([
    ['../outside.mjs', 'VALIDATION_FAILED'],
    ['/etc/passwd', 'VALIDATION_FAILED'],
    ['', 'VALIDATION_FAILED'],
    ['not-there.mjs', 'VALIDATION_FAILED'],
    ['main.py', 'UNSUPPORTED_RUNTIME'],
  ])('with the entry %j: %s', async (entry, code) => {
    expect(await earlyFailure({ entry })).toMatchObject({ code });
  });
});

describe('a hostile archive is refused by the name of its member', () => {
  const member: readonly [string, readonly Member[], string][] = [
    ['an absolute path', [{ path: '/tmp/bw-escape.txt', content: 'x' }], '/tmp/bw-escape.txt'],
    ['a path with `..`', [{ path: 'a/../../escape.txt', content: 'x' }], 'a/../../escape.txt'],
    ['a link to an absolute path', [{ path: 'out', type: 'SymbolicLink', linkpath: '/etc' }], '"out"'],
    ['a link that leaves', [{ path: 'a/out', type: 'SymbolicLink', linkpath: '../../x' }], '"a/out"'],
    [
      'a link that leaves by way of another link',
      [
        { path: 'd/f', content: 'x' },
        { path: 'up', type: 'SymbolicLink', linkpath: 'd/..' },
        { path: 'out', type: 'SymbolicLink', linkpath: 'up/../../..' },
      ],
      '"out"',
    ],
    [
      'a file behind a link',
      [
        { path: 'dir', type: 'SymbolicLink', linkpath: 'elsewhere' },
        { path: 'dir/file', content: 'x' },
      ],
      '"dir"',
    ],
    ['a link to nothing', [{ path: 'l', type: 'SymbolicLink', linkpath: 'gone' }], '"l"'],
    ['a hard link', [{ path: 'h', type: 'Link', linkpath: 'index.mjs' }], '"h"'],
    ['a device', [{ path: 'tty', type: 'CharacterDevice' }], '"tty"'],
    ['a pipe', [{ path: 'fifo', type: 'FIFO' }], '"fifo"'],
    ['two files of one name', [{ path: 'index.mjs', content: 'y' }], '"index.mjs"'],
  ];
  test.each(member)('%s', async (_what, members, named) => {
    const error = await earlyFailure({ archive: archiveOf([ENTRY, ...members]) });
    expect(error.code).toBe('PROGRAM_INTEGRITY');
    expect(error.message).toContain(named.startsWith('"') ? named : JSON.stringify(named));
    expect(await readdir('/tmp')).not.toContain('bw-escape.txt');
  });

  test('one that unpacks to too much is refused before it is written', async () => {
    const archive = archiveOf([ENTRY, { path: 'large', size: 2 * 1024 ** 3 }]);
    expect(await earlyFailure({ archive })).toMatchObject({
      code: 'PROGRAM_INTEGRITY',
      message: containing('1073741824 bytes'),
    });
  });

  test('one that is not a gzip tar, or ends too early, is refused', async () => {
    for (const archive of [
      Buffer.from('nonsense'),
      gzipSync(Buffer.from('no tar')),
      archiveOf([ENTRY]).subarray(0, 60),
      gzipSync(tarOf([ENTRY]).subarray(0, 520)),
    ]) {
      expect(await earlyFailure({ archive })).toMatchObject({ code: 'PROGRAM_INTEGRITY' });
    }
  });

  test('one that brings its own SDK is told to leave it out', async () => {
    const archive = archiveOf([
      ENTRY,
      { path: 'node_modules/@boardwalk-labs/workflow/index.mjs', content: '' },
    ]);
    expect(await earlyFailure({ archive })).toMatchObject({
      code: 'VALIDATION_FAILED',
      message: containing('SDK'),
    });
  });

  test('links inside the archive are fine', async () => {
    const archive = archiveOf([
      { path: './real/run.mjs', content: 'export default () => "through a link"' },
      { path: 'index.mjs', type: 'SymbolicLink', linkpath: 'real/run.mjs' },
    ]);
    const { gateway } = await finishedRun({ archive });
    expect(gateway.finalizes[0]).toMatchObject({ status: 'completed', output: 'through a link' });
  });
});
