// Programs that misbehave. Each ends as one finalize with a code that says what happened, and the runtime with 0.

import { describe, expect, test } from 'vitest';
import { json } from './testGateway.js';
import { eventsOf, finishedRun, type RunOptions } from './world.js';

const containing = (text: string): unknown => expect.stringContaining(text);

async function failure(options: RunOptions): Promise<{
  readonly error: unknown;
  readonly gateway: Awaited<ReturnType<typeof finishedRun>>['gateway'];
}> {
  const { code, gateway, leftovers } = await finishedRun(options);
  expect(code).toBe(0);
  expect(leftovers).toEqual([]);
  expect(gateway.finalizes).toHaveLength(1);
  const [finalize] = gateway.finalizes;
  expect(finalize?.status).toBe('failed');
  return { error: (finalize?.output as { error: unknown }).error, gateway };
}

describe('a program that fails', () => {
  test('by throwing is finalized with code, message and hint, without its stack', async () => {
    const { error } = await failure({
      source: `export default () => { throw Object.assign(new Error('no stock'), { code: 'OUT_OF_STOCK', hint: 'order more' }); }`,
    });
    expect(error).toEqual({ code: 'OUT_OF_STOCK', message: 'no stock', hint: 'order more' });
  });

  test('tells where only to the log of a runtime that is debugged', async () => {
    const source = `export default function run() { return deep(); }\nfunction deep() { throw new Error('no'); }`;
    const told = async (debug: boolean) => {
      const { stderr, gateway } = await finishedRun({ source, handOver: { debug } });
      expect(JSON.stringify([gateway.finalizes, gateway.rows])).not.toContain('index.mjs');
      return stderr;
    };
    expect(await told(true)).toMatch(/Error: no +at deep \(.*index\.mjs:2:/);
    expect(await told(false)).not.toContain('index.mjs');
  });

  test('with an ordinary error gets the name of the error as its code', async () => {
    const { error } = await failure({ source: `export default async () => null.x` });
    expect(error).toMatchObject({ code: 'TypeError', message: containing('null') });
  });

  test('at its top level fails in the same way', async () => {
    const { error } = await failure({ source: `throw new RangeError('early'); export default () => 1;` });
    expect(error).toEqual({ code: 'RangeError', message: 'early' });
  });

  test('with text, null or an object whose getters throw is still told', async () => {
    for (const [thrown, message] of [
      ['"plain text"', 'plain text'],
      ['null', 'null'],
      ['{ get message() { throw 1; } }', 'The program threw a value that can not be read.'],
    ] as const) {
      const { error } = await failure({ source: `export default () => { throw ${thrown}; }` });
      expect(error).toEqual({ code: 'PROGRAM_ERROR', message });
    }
  });

  test('with megabytes of message, secrets in it, is cut and redacted', async () => {
    const { error } = await failure({
      source: `import { secrets } from '@boardwalk-labs/workflow';
        export default async () => { throw new Error((await secrets.get('TOKEN')) + 'x'.repeat(5e6)); }`,
      secrets: { TOKEN: 'very-secret-token' },
    });
    const { message } = error as { message: string };
    expect(message).toMatch(/^\[REDACTED\]x+…$/);
    expect(message.length).toBe(8_001);
  });

  test('without a default export is told which export is wanted', async () => {
    const { error } = await failure({ source: `export const run = () => 1;` });
    expect(error).toEqual({
      code: 'VALIDATION',
      message: `The program's entry has no function as its default export (it exports run).`,
      hint: 'The entry must have: export default async function run(input, context) { … }',
    });
  });

  test('with a syntax error is told', async () => {
    const { error } = await failure({ source: `export default (` });
    expect(error).toMatchObject({ code: 'SyntaxError' });
  });

  test('by calling process.exit(0) has not returned', async () => {
    const { error, gateway } = await failure({
      source: `export default () => { console.log('last words'); process.exit(0); }`,
    });
    expect(error).toMatchObject({
      code: 'INTERNAL_ERROR',
      hint: containing('Return from the run function'),
    });
    expect(eventsOf(gateway, 'program_output').map((event) => event.text)).toEqual(['last words']);
  });

  test('by exiting with a code is told by its last line on stderr', async () => {
    const { error } = await failure({
      source: `export default () => { process.stderr.write('disk is gone\\n\\n'); process.exit(9); }`,
    });
    expect(error).toEqual({
      code: 'PROGRAM_ERROR',
      message: 'disk is gone',
      hint: `The program's process ended with exit code 9.`,
    });
  });

  test('by killing its process is told by the signal', async () => {
    const { error } = await failure({
      source: `export default () => new Promise(() => process.kill(process.pid, 'SIGKILL'))`,
    });
    expect(error).toMatchObject({ code: 'PROGRAM_ERROR', hint: containing('out of memory') });
  });

  test('by a rejection that nobody handles ends at once', async () => {
    const { error } = await failure({
      source: `export default () => { Promise.reject(new URIError('lost')); return new Promise((r) => setTimeout(r, 60_000)); }`,
    });
    expect(error).toEqual({ code: 'URIError', message: 'lost' });
  });

  test('by returning a cycle or more than 2 MiB is told so (R27)', async () => {
    const cycle = await failure({ source: `export default () => { const a = {}; a.a = a; return a; }` });
    expect(cycle.error).toMatchObject({
      code: 'VALIDATION',
      message: containing('contains itself'),
    });
    const large = await failure({ source: `export default () => 'x'.repeat(40 * 1024 * 1024)` });
    expect(large.error).toMatchObject({
      code: 'VALIDATION_FAILED',
      message: containing('2097152'),
    });
  });
});

describe('a program that prints', () => {
  test('megabytes of binary without a line end makes one bounded row, and completes', async () => {
    const { code, gateway } = await finishedRun({
      source: `import { once } from 'node:events';
        export default async () => {
          const block = Buffer.alloc(1 << 20, 0); for (let i = 0; i < block.length; i += 1) block[i] = i % 256 === 10 ? 0 : i % 256;
          for (let i = 0; i < 8; i += 1) if (!process.stdout.write(block)) await once(process.stdout, 'drain');
          return 'printed'; }`,
    });
    expect(code).toBe(0);
    expect(gateway.finalizes[0]).toMatchObject({ status: 'completed', output: 'printed' });
    const printed = eventsOf(gateway, 'program_output');
    expect(printed).toHaveLength(1);
    expect(printed[0]?.text.length).toBe(8_192 + '… (truncated)'.length);
  });

  test('without end gets 10 000 rows, one notice, and silence', async () => {
    const { gateway } = await finishedRun({
      source: `export default () => { for (let i = 0; i < 12_000; i += 1) console.log(i); process.stdout.write('x\\n'.repeat(5_000)); return 1; }`,
    });
    const printed = eventsOf(gateway, 'program_output');
    expect(printed).toHaveLength(10_001);
    expect(printed.at(-1)).toMatchObject({ stream: 'stderr', text: containing('10000 lines') });
    expect(gateway.finalizes[0]).toMatchObject({ status: 'completed' });
  });
});

describe('a call of the program', () => {
  test('to something that is not there yet says so, by its name', async () => {
    const { gateway } = await finishedRun({
      source: `import { agent, artifacts, auth, computer, humanInput, workflows } from '@boardwalk-labs/workflow';
        export default async () => {
          const calls = [() => workflows.call('a', {}), () => workflows.run('a', {}), () => workflows.schedule('a', {}, { cron: '* * * * *' }),
            () => humanInput({ prompt: 'x', input: { kind: 'text' } }), () => artifacts.write('n', 't', 'b'), () => auth.idToken('x'),
            () => auth.apiToken(), () => computer.openBrowser(), () => computer.openDesktop(),
            () => agent('x', { tools: [{ name: 't', execute() {} }] }), () => agent('x', { schema: {} }), () => agent('x', { builtins: 'all' })];
          return Promise.all(calls.map((call) => call().then(() => 'worked', (error) => error.code + ' ' + error.message)));
        }`,
    });
    expect(gateway.finalizes[0]?.output).toEqual(
      [
        'workflows.call()',
        'workflows.run()',
        'workflows.schedule()',
        'humanInput()',
        'artifacts.write()',
        'auth.idToken()',
        'auth.apiToken()',
        'computer.openBrowser()',
        'computer.openDesktop()',
        'The agent option `tools`',
        'The agent option `schema`',
        "The agent option `builtins` with another value than 'none'",
      ].map((what) => `UNSUPPORTED ${what} is not available in boardwalk-fleet 0.1 yet.`),
    );
  });

  test('for a secret that is missing or not granted is refused with a hint', async () => {
    const { gateway } = await finishedRun({
      source: `import { secrets } from '@boardwalk-labs/workflow';
        export default () => Promise.all(['MISSING', 'DENIED'].map((name) => secrets.get(name).catch((e) => [e.code, typeof e.data.hint])))`,
    });
    expect(gateway.finalizes[0]?.output).toEqual([
      ['NOT_FOUND', 'string'],
      ['FORBIDDEN', 'string'],
    ]);
  });

  test('whose secret in the environment can not be had fails the run with that error', async () => {
    const { error } = await failure({ manifest: { env: { KEY: '${{ secrets.DENIED_KEY }}' } } });
    expect(error).toMatchObject({ code: 'FORBIDDEN', message: containing('DENIED_KEY') });
  });

  test('whose secret in the environment can not be had just now is left to another attempt', async () => {
    const { code, gateway } = await finishedRun({
      manifest: { env: { KEY: '${{ secrets.TOKEN }}' } },
      answers: { 'secrets/resolve': (_body, res) => json(res, 503, {}) },
    });
    expect({ code, finalizes: gateway.finalizes }).toEqual({ code: 75, finalizes: [] });
  });

  test('whose secret in the environment is answered oddly fails with what was said', async () => {
    const { error } = await failure({
      manifest: { env: { KEY: '${{ secrets.TOKEN }}' } },
      answers: { 'secrets/resolve': (_body, res) => json(res, 418, { no: 'tea' }) },
    });
    expect(error).toMatchObject({ code: 'INTERNAL_ERROR', message: containing('418') });
  });

  test('over budget ends the run with BUDGET_EXCEEDED, also inside parallel (R24)', async () => {
    const spent = {
      t: 'result',
      turn: { text: 'a', toolCalls: [], usage: { inputTokens: 9, outputTokens: 9 } },
      modelRef: 'm',
    };
    const { error } = await failure({
      source: `import { agent, parallel } from '@boardwalk-labs/workflow';
        export default async () => { await agent('one'); return parallel([() => agent('two')]); }`,
      models: [[spent]],
      manifest: { budget: { max_tokens: 10 } },
    });
    expect(error).toMatchObject({ code: 'BUDGET_EXCEEDED' });
  });

  test('to a model that fails ends its turn with the error, and the program may go on', async () => {
    const { gateway } = await finishedRun({
      source: `import { agent } from '@boardwalk-labs/workflow';
        export default async () => { const seen = []; for (let i = 0; i < 4; i += 1) await agent('x').catch((e) => seen.push(e.code + ': ' + e.message)); return seen; }`,
      models: [
        [
          { t: 'delta', text: 'half' },
          { t: 'error', error: { code: 'MODEL_OVERLOADED', message: 'busy' } },
        ],
        ['this is not json'],
        [{ t: 'delta', text: 'half' }, 'drop'],
        [{ t: 'delta', text: 'all but a result' }],
      ],
    });
    expect(gateway.finalizes[0]?.output).toEqual([
      'MODEL_OVERLOADED: busy',
      containing('PROVIDER_ERROR: a line of the inference stream is not JSON'),
      'PROVIDER_ERROR: The connection broke during the model call.',
      'PROVIDER_ERROR: The model call ended without a result.',
    ]);
    expect(eventsOf(gateway, 'turn_ended').map((event) => event.reason)).toEqual([
      'error',
      'error',
      'error',
      'error',
    ]);
  });
});
