import { describe, expect, it } from 'vitest';
import { lastPrompt, parseScript, ScriptedModel } from '../../../src/dev/scriptedModel.js';

const entry = (text: string, conditions: object = {}): object => ({ ...conditions, steps: [{ text }] });

function texts(
  model: ScriptedModel,
  ...calls: readonly [string, (string | null)?][]
): (string | undefined)[] {
  return calls.map(([prompt, agentName]) => {
    const step = model.answer({ prompt, agentName }).steps.at(-1);
    return step?.kind === 'text' ? step.text : undefined;
  });
}

describe('choosing an entry', () => {
  it('takes the first that matches and was not used', () => {
    const model = new ScriptedModel(
      parseScript([entry('a1', { match: 'apple' }), entry('any'), entry('a2', { match: '/APPLE/i' })]),
    );
    expect(texts(model, ['pear'], ['an apple'], ['an apple'])).toEqual(['any', 'a1', 'a2']);
  });

  it('keeps the entries of a named agent for it', () => {
    const script = parseScript([entry('for ada', { agent: 'ada' }), entry('one'), entry('two')]);
    expect(texts(new ScriptedModel(script), ['x', 'bob'], ['x', null], ['x', 'ada'])).toEqual([
      'one',
      'two',
      'for ada',
    ]);
    expect(texts(new ScriptedModel(script), ['x'], ['x'], ['x'])).toEqual(['one', 'two', 'for ada']);
    expect(
      texts(new ScriptedModel(parseScript([entry('for ada', { agent: 'ada' })])), ['x', null]),
    ).not.toEqual(['for ada']);
  });

  it('treats a pattern that is global or sticky like any other', () => {
    const model = new ScriptedModel(parseScript([1, 2, 3].map((n) => entry(String(n), { match: '/a/gy' }))));
    expect(texts(model, ['xa'], ['xa'], ['xa'])).toEqual(['1', '2', '3']);
  });

  it('reads the prompt of the last user message, whatever else is in the conversation', () => {
    const parts = [{ type: 'text', text: 'a' }, { type: 'file' }, null, { type: 'text', text: 'b' }];
    expect(
      lastPrompt([
        { role: 'user', content: 'first' },
        7,
        { role: 'user', content: parts },
        { role: 'assistant' },
      ]),
    ).toBe('a\nb');
    expect(lastPrompt([])).toBe('');
    expect(lastPrompt([{ role: 'user', content: 7 }])).toBe('');
  });
});

describe('a script that is wrong', () => {
  it.each([
    [{}, 'script: '],
    [[{}], 'script[0].steps: '],
    [[{ steps: [], when: 1 }], 'script[0]: '],
    [[{ steps: [] }, { steps: ['stop'] }], 'script[1].steps[0]: must be one of'],
    [[{ steps: [{ text: 'a', reasoning: 'b' }] }], 'script[0].steps[0]: must be one of'],
    [[{ steps: [{}] }], 'script[0].steps[0]: must be one of'],
    [[{ steps: [{ constructor: 1 }] }], 'script[0].steps[0]: must be one of'],
    [[{ steps: [{ wait_ms: -1 }] }], 'script[0].steps[0].wait_ms: '],
    [[{ steps: [{ tool: { input: {} } }] }], 'script[0].steps[0].tool.name: '],
    [[{ steps: [{ status: 200 }] }], 'script[0].steps[0].status: '],
    [[{ steps: [{ text: 'a' }, { status: 503 }] }], 'script[0].steps[1]: only wait_ms'],
    [[{ steps: ['drop', { text: 'a' }] }], 'script[0].steps[0]: a drop ends'],
    [[{ match: '/(/', steps: [] }], 'script[0].match: '],
    [[{ steps: [], usage: { inputTokens: 1.5 } }], 'script[0].usage.inputTokens: '],
  ])('%j is refused with the place', (script, place) => {
    expect(() => parseScript(script)).toThrow(
      expect.objectContaining({
        code: 'SCRIPT_INVALID',
        message: expect.stringContaining(place) as string,
      }) as Error,
    );
  });

  it('takes every step of the list', () => {
    const steps = [
      { text: 'a' },
      { reasoning: 'b' },
      { tool: { name: 'c', input: {} } },
      { wait_ms: 1 },
      { ping: 3 },
      'reset',
      { error: 'no' },
    ];
    expect(parseScript([{ steps }])[0]?.steps.map(({ kind }) => kind)).toEqual([
      'text',
      'reasoning',
      'tool',
      'wait',
      'ping',
      'reset',
      'error',
    ]);
    expect(parseScript([{ steps: ['drop'] }, { steps: [{ status: 429 }] }])).toHaveLength(2);
  });
});
