import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readDevFile, readScriptFile } from '../../../src/dev/devFile.js';

describe('a dev.json', () => {
  let dir = '';
  let file = '';
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bwf-devfile-'));
    file = join(dir, 'dev.json');
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  it('may be absent', async () => {
    expect(await readDevFile(file)).toEqual({ env: {}, secrets: {}, answers: {} });
  });

  it.each([
    ['{\n  "secrets": { "KEY": "hush" },\n  oops\n}', 'dev.json:3:3: it is not JSON.'],
    ['{\n  "secrets": { "KEY": "hush"', 'it is not JSON.'],
    ['{"inputs": 1}', 'dev.json: no such field: inputs.'],
    ['{"env": {"A": 1}}', 'dev.json: env.A: '],
    ['{"script": [{"steps": [{"txt": "x"}]}]}', 'dev.json: script[0].steps[0]: must be one of'],
    ['{"script": [{"steps": [{"txt": "x"}]}]}', '(not txt)'],
    ['{"script": [{"steps": [], "when": 1}]}', 'dev.json: script[0]: no such field: when.'],
  ])('%s is refused by place and name, never by what it holds', async (text, words) => {
    await writeFile(file, text);
    const refused: unknown = await readDevFile(file).catch((error: unknown) => error);
    expect(refused).toMatchObject({ message: expect.stringContaining(words) as string });
    expect(String(refused)).not.toContain('hush');
  });

  it('has a script that may come from a file of its own', async () => {
    await writeFile(file, '[{"steps": [{"text": "hi"}]}]');
    expect(await readScriptFile(file)).toHaveLength(1);
    await writeFile(file, '{}');
    await expect(readScriptFile(file)).rejects.toMatchObject({ usage: false });
    await expect(readScriptFile(join(dir, 'none'))).rejects.toMatchObject({ usage: true });
  });
});
