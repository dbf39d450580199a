import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runDev, WorkflowFolders, type DevEnd } from '../../support/dev.js';
import { HELLO, MAIN, runProgram } from '../../support/localFleet.js';

/** On the host: `dev --host --json`. */
async function dev(dir: string, ...flags: readonly string[]): Promise<DevEnd> {
  return runDev([dir, '--host', ...flags]);
}

describe('dev', () => {
  let folders: WorkflowFolders;
  beforeAll(async () => {
    folders = await WorkflowFolders.open();
  });
  afterAll(() => folders.remove());

  const workflow = (files: Readonly<Record<string, string>>): Promise<string> => folders.make(files);

  it('prints the stored rows of the hello example in rising cursor order, a reset among them, then the result', async () => {
    const { code, rows, result } = await dev(HELLO);
    expect(code).toBe(0);
    const cursors = rows.map((row) => row.cursor);
    expect(cursors).toEqual([...new Set(cursors)].sort((a, b) => a - b));
    const kinds = rows.map((row) => row.event.kind);
    const order = ['run_status', 'turn_started', 'text_delta', 'turn_reset', 'turn_ended', 'output'];
    const places = order.map((kind) => kinds.indexOf(kind));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places).not.toContain(-1);
    expect(result).toMatchObject({
      status: 'completed',
      output: { greeting: expect.stringContaining('Ada') as string },
    });
  });

  it('bundles a TypeScript entry and gives flags the last word over dev.json', async () => {
    const dir = await workflow({
      'src/index.ts': `
        import { secrets } from '@boardwalk-labs/workflow';
        import { shout } from './shout.js';
        interface Input { readonly word: string }
        export default async function run(input: Input): Promise<string> {
          return shout(input.word) + ' ' + process.env['REGION'] + ' ' + (await secrets.get('KEY')).length;
        }`,
      'src/shout.ts': 'export const shout = (word: string): string => word.toUpperCase();',
      'workflow.jsonc':
        '{ "slug": "t", "triggers": [{ "kind": "manual" }], "permissions": { "secrets": [{ "name": "KEY" }] } }',
      'dev.json': JSON.stringify({
        input: { word: 'file' },
        env: { REGION: 'north' },
        secrets: { KEY: 'from-file' },
      }),
    });
    const fromFile = await dev(dir);
    expect(fromFile.result?.output).toBe('FILE north 9');
    const flags = ['--input', '{"word":"flag"}', '--env', 'REGION=south', '--secret', 'KEY=seven77'];
    expect((await dev(dir, ...flags)).result?.output).toBe('FLAG south 7');
  });

  it('takes voided text back in words where standard output is no terminal', async () => {
    const { code, stdout } = await runProgram(['dev', HELLO, '--host']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/taken back: \d+ characters/);
    expect(stdout).toContain('output: {"greeting"');
  });

  it.each([
    [
      'throws',
      'export default () => { const e = new Error("broke"); e.code = "ORDER_LOST"; throw e; }',
      'ORDER_LOST',
    ],
    ['throws at its top level', 'throw new TypeError("early")', 'TypeError'],
    ['exits', 'export default () => { process.exit(3); }', 'PROGRAM_ERROR'],
    ['exports no function', 'export const run = () => 1;', 'VALIDATION'],
    [
      'rejects behind its back',
      'export default async () => { Promise.reject(new Error("late")); await new Promise((r) => setTimeout(r, 10_000)); }',
      'Error',
    ],
    ['returns what is no JSON', 'export default () => { const a = {}; a.a = a; return a; }', 'VALIDATION'],
    ['returns too much', 'export default () => "x".repeat(3_000_000);', 'VALIDATION_FAILED'],
    [
      'asks for what is not there yet',
      'import { humanInput } from "@boardwalk-labs/workflow"; export default () => humanInput({ prompt: "?", input: { kind: "text" } });',
      'UNSUPPORTED',
    ],
  ])('ends 1 with the code of a program that %s', async (_what, source, code) => {
    const ended = await dev(await workflow({ 'index.mjs': source }));
    expect(ended.result?.error?.code).toBe(code);
    expect(ended.result?.status).toBe('failed');
    expect(ended.code).toBe(1);
  });

  it('survives a program that prints megabytes and binary', async () => {
    const dir = await workflow({
      'index.mjs': `export default () => {
        process.stdout.write(Buffer.from(Array.from({ length: 4096 }, (_, i) => i % 256)));
        for (let i = 0; i < 2000; i += 1) process.stdout.write('x'.repeat(2000) + '\\n');
        return 'alive';
      }`,
    });
    const { code, result } = await dev(dir);
    expect(result?.output).toBe('alive');
    expect(code).toBe(0);
  });

  it('fails a run whose model stream is garbage or cut, with a code and without a stack', async () => {
    const dir = await workflow({
      'index.mjs':
        'import { agent } from "@boardwalk-labs/workflow"; export default () => agent("go", { builtins: "none" });',
      'dev.json': JSON.stringify({ script: [{ steps: [{ text: 'half' }, 'drop'] }] }),
    });
    const { result } = await dev(dir);
    expect(result?.error?.code).toBe('PROVIDER_ERROR');
    expect(JSON.stringify(result)).not.toContain('    at ');
  });

  it.each([
    ['has no descriptor', { 'index.mjs': 'export default 1', 'workflow.jsonc': '' }, 'workflow.jsonc'],
    ['has a broken descriptor', { 'index.mjs': '', 'workflow.jsonc': '{ "slug": }' }, 'workflow.jsonc:1:11'],
    ['has no entry', {}, 'no entry module'],
    ['does not compile', { 'src/index.ts': 'export default (' }, 'src/index.ts:1:17'],
    [
      'has an entry outside',
      { 'workflow.jsonc': '{ "slug": "t", "triggers": [{ "kind": "manual" }], "entry": "../x.mjs" }' },
      'entry: must be a path inside',
    ],
    [
      'has a wrong dev.json',
      { 'index.mjs': 'export default () => 1', 'dev.json': '{"inputs":1}' },
      'dev.json',
    ],
    [
      'has a wrong script',
      { 'index.mjs': 'export default () => 1', 'dev.json': '{"script":[{"steps":[{"txt":"x"}]}]}' },
      'script',
    ],
  ])('refuses a folder that %s with one clear message', async (_what, files, words) => {
    const { code, stderr, rows } = await dev(await workflow(files));
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: /);
    expect(stderr).toContain(words);
    expect(stderr).not.toContain('    at ');
    expect(rows).toEqual([]);
  });

  /** A directory for temporary files that nobody else uses. */
  async function ownTemporary(name: string): Promise<string> {
    const path = join(folders.dir, name);
    await mkdir(path);
    return path;
  }

  it('leaves nothing behind', async () => {
    const TMPDIR = await ownTemporary('t1');
    const { code } = await runDev([await workflow({ 'index.mjs': 'export default () => 1' }), '--host'], {
      TMPDIR,
    });
    expect(code).toBe(0);
    expect(await readdir(TMPDIR)).toEqual([]);
  });

  it('whose reader goes away, as in `dev DIR | head -1`, ends its run in order and leaves nothing behind', async () => {
    const TMPDIR = await ownTemporary('t2');
    const child = spawn(process.execPath, [MAIN, 'dev', HELLO, '--host'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'] ?? '', HOME: TMPDIR, TMPDIR },
    });
    const stderr = text(child.stderr);
    child.stdout.once('data', () => child.stdout.destroy());
    const [code] = (await once(child, 'exit')) as [number | null];
    expect(await stderr).not.toContain('    at ');
    expect(code).toBe(0);
    expect(await readdir(TMPDIR)).toEqual([]);
  });
});
