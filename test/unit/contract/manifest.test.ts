import { describe, expect, it } from 'vitest';
import { isRelativePath, readManifest, secretReference } from '../../../src/contract/manifest.js';
import { WireError } from '../../../src/contract/wireError.js';
import { named, vectorCases, type VectorCase } from './vectors.js';

interface ManifestCase extends VectorCase {
  readonly manifest: unknown;
  readonly valid: boolean;
}

const cases = vectorCases<ManifestCase>('manifest', 214).filter(({ type }) => type === 'manifest');

describe('a manifest that is valid', () => {
  it.each(named(cases.filter(({ valid }) => valid)))(
    'is read without a warning: %s',
    (_name, { manifest }) => {
      expect(readManifest(manifest).warnings).toEqual([]);
    },
  );
});

describe('a manifest', () => {
  it('has defaults for everything that a runner acts on', () => {
    expect(readManifest({}).manifest).toEqual({
      inputSchema: null,
      outputSchema: null,
      workspace: { persist: false },
      budget: { maxTokens: null, maxUsd: null, maxComputeSeconds: null },
      env: {},
      recording: true,
      permissions: { secrets: [], idToken: false },
    });
  });

  it('is read field by field, and what is not known is nobody’s business (R10)', () => {
    const { manifest, warnings } = readManifest({
      slug: 'night-owl',
      input_schema: { type: 'object' },
      workspace: { persist: ['notes', 'a/b'], key: '${input.x}', future: 1 },
      budget: { max_tokens: 1_000, max_usd: 0.5, max_compute_seconds: 60, max_duration_seconds: 5 },
      env: { MODE: 'fast', KEY: '${{ secrets.API_KEY }}' },
      recording: false,
      permissions: { secrets: [{ name: 'API_KEY' }], id_token: 'write', artifacts: 'read' },
      brand_new: { any: 1 },
    });
    expect(warnings).toEqual([]);
    expect(manifest).toMatchObject({
      inputSchema: { type: 'object' },
      workspace: { persist: ['notes', 'a/b'] },
      budget: { maxTokens: 1_000, maxUsd: 0.5, maxComputeSeconds: 60 },
      recording: false,
      permissions: { secrets: ['API_KEY'], idToken: true },
    });
  });

  it('is used with a warning when a field is malformed that only the server acts on', () => {
    expect(readManifest({ permissions: 'all' }).warnings).toHaveLength(1);
    const { manifest, warnings } = readManifest({ permissions: { secrets: ['A', { name: 'B' }] }, slug: 7 });
    expect(manifest.permissions.secrets).toEqual(['B']);
    expect(warnings).toHaveLength(1);
  });

  it.each([
    ['manifest: the body', 'text'],
    ['manifest: the body', null],
    ['manifest: budget must be an object', { budget: 7 }],
    ['manifest: budget.max_usd must be a number above 0', { budget: { max_usd: 0 } }],
    ['manifest: budget.max_usd must be', { budget: { max_usd: '5' } }],
    ['manifest: budget.max_tokens must be an integer', { budget: { max_tokens: 1.5 } }],
    ['manifest: input_schema must be an object', { input_schema: true }],
    ['manifest: recording must be true or false', { recording: 'off' }],
    ['manifest: workspace.persist must be', { workspace: { persist: ['../x'] } }],
    ['manifest: env must be an object of strings', { env: { N: 1 } }],
    ['manifest: env.KEY must be exactly one secret reference', { env: { KEY: 'Bearer ${{ secrets.A }}' } }],
  ])('is refused when a field can not be read that the run depends on: %s', (message, manifest) => {
    expect(() => readManifest(manifest)).toThrow(WireError);
    expect(() => readManifest(manifest)).toThrow(message);
  });
});

describe('a value of env', () => {
  it.each([
    ['${{ secrets.API_KEY }}', 'API_KEY'],
    ['${{secrets.A-b}}', 'A-b'],
    ['${{ secrets.A }} ', null],
    ['${{ vars.X }}', null],
    ['${HOME}', null],
    ['plain', null],
  ])('%j refers to %j', (value, name) => {
    expect(secretReference(value)).toBe(name);
  });
});

describe('a relative path', () => {
  it.each(['a', 'a/b.txt', '.hidden', '..a'])('is %j', (path) => expect(isRelativePath(path)).toBe(true));
  it.each(['', '/a', 'a/', 'a//b', './a', '../a', 'a/..', 'a\\b'])('is not %j', (path) =>
    expect(isRelativePath(path)).toBe(false),
  );
});
