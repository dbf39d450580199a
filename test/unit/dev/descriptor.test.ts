import { describe, expect, it } from 'vitest';
import { checkDescriptor } from '../../../src/dev/descriptor.js';
import { named, vectorCases, type VectorCase } from '../contract/vectors.js';

interface ManifestCase extends VectorCase {
  readonly manifest: Record<string, unknown>;
  readonly valid: boolean;
}

const all = vectorCases<ManifestCase>('manifest', 214).filter(({ type }) => type === 'manifest');
/** Schemas are derived from the program and never written. */
const cases = all.filter(({ name }) => !name.includes('schema'));

describe('a descriptor that a platform takes', () => {
  it.each(named(cases.filter(({ valid }) => valid)))('passes without a word: %s', (_name, { manifest }) => {
    expect(checkDescriptor(manifest)).toEqual({ problems: [], warnings: [] });
  });
});

describe('a descriptor that a platform refuses', () => {
  it.each(named(cases.filter(({ valid }) => !valid)))(
    'is refused or warned about: %s',
    (_name, { manifest }) => {
      const { problems, warnings } = checkDescriptor(manifest);
      expect([...problems, ...warnings]).not.toEqual([]);
    },
  );
});

const MANUAL = { slug: 'hello', triggers: [{ kind: 'manual' }] };

describe('the author of a descriptor', () => {
  it.each([
    [{ triggers: MANUAL.triggers }, 'slug: is missing'],
    [{ slug: 'hello' }, 'triggers: is missing'],
    [{ slug: 'hello', triggers: [{ kind: 'moon' }] }, 'triggers[0].kind: must have a kind: manual, cron'],
    [{ ...MANUAL, permissions: ['API_KEY'] }, '{"secrets": [{"name": "API_KEY"}]}'],
    [
      { ...MANUAL, permissions: { secrets: ['API_KEY'] } },
      'permissions.secrets[0]: must be a list of names as',
    ],
    [{ ...MANUAL, permissions: { secrets: 'API_KEY' } }, 'permissions.secrets: must be a list of names as'],
    [{ ...MANUAL, secrets: ['API_KEY'] }, 'secrets: belongs below permissions'],
    [
      { ...MANUAL, env: { KEY: 'x ${{ secrets.KEY }}' } },
      'env.KEY: must be plain text or exactly one secret',
    ],
    [{ ...MANUAL, budget: { max_usd: '5' } }, 'budget.max_usd: must be a number above 0'],
  ])('is told where the mistake is and what is right: %j', (descriptor, words) => {
    expect(checkDescriptor(descriptor).problems.join('\n')).toContain(words);
  });

  it('is warned about a key that is not known, which a newer platform may know', () => {
    expect(checkDescriptor({ ...MANUAL, retries: 3, budget: { max_tokns: 1 } })).toEqual({
      problems: [],
      warnings: [
        'budget.max_tokns: no such field is known; it is ignored',
        'retries: no such field is known; it is ignored',
      ],
    });
  });
});
