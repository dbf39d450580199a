import { describe, expect, it } from 'vitest';
import { encodeKeySegment, isSafePathSegment, pathSegment, scopePath } from '../../../src/contract/ids.js';
import { named, seededRandom, vectorCases, type VectorCase } from './vectors.js';

interface ScopeCase extends VectorCase {
  readonly workflow: string;
  readonly environment: string | null;
  readonly key: string | null;
  readonly path: string;
  readonly ours?: { readonly path?: string; readonly refused?: true };
}

const UNSAFE = expect.objectContaining({ code: 'UNSAFE_ID' }) as unknown;

describe('the directory of a workspace scope', () => {
  it.each(named(vectorCases<ScopeCase>('scope-dir', 32)))(
    '%s',
    (_name, { workflow, environment, key, path, ours }) => {
      const derive = (): string =>
        scopePath({ workflowId: workflow, environmentId: environment, workspaceKey: key });
      if (ours?.refused === true) expect(derive).toThrow(UNSAFE);
      else expect(derive()).toBe(ours?.path ?? path);
    },
  );

  it('is another one for every other scope, however hostile the key', () => {
    const random = seededRandom(7);
    const alphabet = [
      'a',
      'A',
      '.',
      '..',
      '/',
      '\\',
      '%',
      '%2F',
      'ø',
      '🌿',
      ' ',
      '\0',
      '\n',
      'keys',
      '_base',
    ];
    const seen = new Map<string, string>();
    for (let round = 0; round < 1_500; round += 1) {
      const length = 1 + Math.floor(random() * 5);
      const key = Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)] ?? '').join(
        '',
      );
      if (key === '.' || key === '..') continue;
      const path = scopePath({ workflowId: 'wf', environmentId: null, workspaceKey: key });
      expect(seen.get(path) ?? key).toBe(key);
      expect(path.split('/').slice(0, 3)).toEqual(['wf', '_base', 'keys']);
      expect(path.split('/')).toHaveLength(4);
      expect(path.split('/').every(isSafePathSegment)).toBe(true);
      seen.set(path, key);
    }
  });
});

describe('an id as a path segment', () => {
  it.each(['run_q7', 'a.b', '...', '~', 'ünï', 'with space', 'x'.repeat(200)])(
    'is taken as it is: %j',
    (id) => {
      expect(pathSegment(id)).toBe(id);
    },
  );

  it.each([
    '',
    '.',
    '..',
    '../x',
    'a/b',
    'a\\b',
    'a\0',
    'a\nb',
    '\u007f',
    '\ud83c',
    'x'.repeat(201),
    'ø'.repeat(101),
  ])('is refused when it could leave its directory or collide: %j (R13)', (id) => {
    expect(isSafePathSegment(id)).toBe(false);
    expect(() => pathSegment(id)).toThrow(UNSAFE);
  });

  it('says which id was refused, shortened and escaped', () => {
    expect(() => pathSegment('../../etc')).toThrow('"../../etc"');
    expect(() => pathSegment(`a\n${'x'.repeat(500)}`)).toThrow(/"a\\nx{58}…"/);
  });
});

describe('a workspace key as a path segment', () => {
  it('is a hash when the encoding is longer than a file name may be', () => {
    expect(encodeKeySegment('k'.repeat(200))).toBe('k'.repeat(200));
    expect(encodeKeySegment('k'.repeat(201))).toMatch(/^[0-9a-f]{64}$/);
    expect(encodeKeySegment('ø'.repeat(34))).toMatch(/^[0-9a-f]{64}$/);
    expect(encodeKeySegment('k'.repeat(201))).not.toBe(encodeKeySegment('k'.repeat(202)));
  });

  it('is refused when two keys would become one', () => {
    expect(() => encodeKeySegment('a\ud83c')).toThrow(UNSAFE);
  });
});
