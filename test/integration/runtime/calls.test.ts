// What the author's functions do, seen from inside a program: input, context, waits, shell, phases, agents in parallel.

import { expect, test } from 'vitest';
import { eventsOf, finishedRun, type RunOptions } from './world.js';

const IMPORTS = `import { agent, HostError, parallel, phase, shell, sleep } from '@boardwalk-labs/workflow';`;

/** What `body` returns, run as a program. */
async function resultOf(body: string, options: RunOptions = {}): Promise<unknown> {
  const { gateway } = await finishedRun({
    source: `${IMPORTS} export default async (input, context) => { ${body} }`,
    ...options,
  });
  return gateway.finalizes[0]?.output;
}

test('input is revived by its schema; without input, an object schema gives an empty object', async () => {
  const schema = { type: 'object', properties: { at: { type: 'string', format: 'date-time' } } };
  const body = `return [input.at instanceof Date, Object.keys(input)]`;
  const manifest = { input_schema: schema };
  expect(await resultOf(body, { manifest, run: { input: { at: '2030-01-01T00:00:00Z' } } })).toEqual([
    true,
    ['at'],
  ]);
  expect(await resultOf(body, { manifest })).toEqual([false, []]);
  expect(await resultOf(`return [input]`)).toEqual([null]);
  expect(await resultOf(`return input`, { run: { input: null, triggerPayload: { from: 'hook' } } })).toEqual({
    from: 'hook',
  });
});

test('the context is frozen data with a signal', async () => {
  const run = { triggerKind: 'cron', actor: { type: 'cron', rule: '* * * * *', extra: 1 } };
  const context = await resultOf(
    `const { signal, ...data } = context;
     return [data, signal.aborted, Object.isFrozen(context) && Object.isFrozen(context.trigger)]`,
    { run },
  );
  expect(context).toEqual([
    {
      runId: 'run_test',
      workflowId: 'wf_1',
      workflowVersion: 3,
      orgId: 'org_1',
      environment: null,
      actor: { type: 'cron', rule: '* * * * *' },
      attempt: 1,
      trigger: { kind: 'cron', firedAt: 1_893_456_000_000, source: '* * * * *' },
      workspaceDir: expect.any(String) as unknown,
    },
    false,
    true,
  ]);
});

test('shell: directory, environment, exit code, time limit, and a bound on output', async () => {
  const seen = await resultOf(`
    const { mkdir } = await import('node:fs/promises'); await mkdir('sub');
    const said = async (cmd, opts) => { try { return await shell(cmd, opts); } catch (error) { return error.code; } };
    return [
      (await said('basename "$PWD"; echo "$EXTRA"; echo err >&2; cat; exit 7', { cwd: 'sub', env: { EXTRA: 'yes' } })),
      (await said('sleep 60 & sleep 60', { timeoutMs: 50 })).exitCode,
      (await said('yes', { maxBuffer: 1000 })),
      (await said('true', { timeoutMs: 'soon' })),
      (await said('true', { cwd: 'nowhere' })),
    ]`);
  expect(seen).toEqual([
    { exitCode: 7, stdout: 'sub\nyes\n', stderr: 'err\n' },
    143,
    'VALIDATION_FAILED',
    'INVALID_PARAMS',
    'ENOENT',
  ]);
});

test('sleep: a past instant returns at once, mistakes and more than seven days are refused', async () => {
  const seen = await resultOf(`
    const codes = [];
    for (const argument of [{ until: new Date(0) }, 0, { durationMs: -1 }, { until: 'soon' }, '8d', 'soon']) {
      codes.push(await sleep(argument).then(() => 'slept', (error) => error.code ?? error.name));
    }
    return codes`);
  expect(seen).toEqual([
    'slept',
    'slept',
    'INVALID_PARAMS',
    'INVALID_PARAMS',
    'VALIDATION_FAILED',
    'TypeError',
  ]);
});

test('phases are rows with ids of their own; blank names and repeated ids are left out', async () => {
  const { gateway } = await finishedRun({
    source: `${IMPORTS} export default () => { phase('One'); phase('Two', { id: 'two' }); phase('  '); phase('Again', { id: 'two' }); phase('Three'); }`,
  });
  expect(eventsOf(gateway, 'phase').map(({ name, id }) => [name, id])).toEqual([
    ['One', 'phase-1'],
    ['Two', 'two'],
    ['Three', 'phase-3'],
  ]);
  expect(gateway.finalizes).toMatchObject([{ status: 'completed', output: null }]);
});

test('agents in parallel have turns of their own, and a reset in one leaves the other alone', async () => {
  const turn = (text: string): object => ({ t: 'result', turn: { text, toolCalls: [] }, modelRef: 'm' });
  const { gateway } = await finishedRun({
    source: `${IMPORTS} export default () => parallel(Array.from({ length: 12 }, (_, i) => () => agent('n' + i)));`,
    models: [
      [{ t: 'delta', text: 'void' }, { t: 'reset' }, { t: 'delta', text: 'a' }, turn('a')],
      [{ t: 'delta', text: 'b' }, turn('b')],
    ],
  });
  const turns = eventsOf(gateway, 'turn_started');
  expect(new Set(turns.map((event) => event.turnId)).size).toBe(12);
  expect(turns.map((event) => event.agentId).sort()).toHaveLength(12);
  expect(eventsOf(gateway, 'turn_reset')).toHaveLength(1);
  const output = gateway.finalizes[0]?.output as string[];
  expect([...output].sort().join('')).toBe('a' + 'b'.repeat(11));
});

test('a call without a host says what to do, and HostError is exported for both sides', async () => {
  expect(
    await resultOf(`
      const { execFile } = await import('node:child_process'); const { promisify } = await import('node:util');
      const sdk = await import.meta.resolve('@boardwalk-labs/workflow');
      const code = "import { usage } from '" + sdk + "'; usage.get().catch((e) => process.stdout.write(e.message))";
      const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code]);
      return [stdout.startsWith('There is no Boardwalk host in this process.'), typeof HostError]`),
  ).toEqual([true, 'function']);
});
