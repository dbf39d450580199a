// How a run ends before its program does: cancelled, interrupted, or with nobody left who vouches for it.

import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { eventsOf, finishedRun, type RunOptions, startRun, type TestRun } from './world.js';
import { json } from './testGateway.js';

const ABORTED = {
  status: 'failed',
  workerId: 'rnr_1/asg_1',
  output: { error: { code: 'RUN_ABORTED', reason: 'cancelled', message: 'Run stopped: cancelled' } },
};

/** Starts a run whose program prints `ready`, and hands it over as soon as it has. */
async function readyRun(options: RunOptions): Promise<TestRun> {
  const run = await startRun(options);
  await run.row((event) => event.kind === 'program_output' && event.text.startsWith('ready'));
  return run;
}

/** Resolves when no process of the run is left: one that was killed may take a moment to be gone. */
async function allGone(dir: string): Promise<void> {
  while ((await processesOf(dir)).length > 0) await new Promise((resolve) => setImmediate(resolve));
}

/** Processes that carry the run's directory in their environment. */
async function processesOf(dir: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const environments = await Promise.all(
    pids.map(async (pid) =>
      (await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')).includes(dir) ? pid : '',
    ),
  );
  return environments.filter((pid) => pid !== '');
}

describe('a cancelled run', () => {
  test('tells the program, whose waits reject with CANCELLED, and is finalized as aborted whatever it returns', async () => {
    const run = await readyRun({
      source: `import { sleep } from '@boardwalk-labs/workflow';
        export default async (input, { signal }) => {
          signal.addEventListener('abort', () => console.log('signal ' + signal.reason.code));
          console.log('ready');
          const code = await sleep('1h').catch((error) => error.code + ' ' + error.data.reason);
          console.log('sleep ' + code);
          return 'made it anyway'; }`,
    });
    run.gateway.tellStop('cancelled');
    expect(await run.exited).toBe(0);
    const printed = eventsOf(run.gateway, 'program_output').map((event) => event.text);
    const { finalizes } = run.gateway;
    await run.dispose();
    expect(printed).toEqual(['ready', 'signal CANCELLED', 'sleep CANCELLED cancelled']);
    expect(finalizes).toEqual([ABORTED]);
    expect(eventsOf(run.gateway, 'output')).toEqual([]);
  });

  test('ends a silent model call at once: the turn is cancelled and the request is gone (R26)', async () => {
    let hungUp: () => void = () => undefined;
    const gone = new Promise<void>((resolve) => (hungUp = resolve));
    const run = await startRun({
      source: `import { agent } from '@boardwalk-labs/workflow'; export default () => agent('think');`,
      answers: {
        inference: (_body, res) => {
          res.once('close', hungUp);
          res.writeHead(200).write('{"t":"delta","text":"hm"}\n');
        },
      },
    });
    await run.row((event) => event.kind === 'text_delta');
    run.gateway.tellStop('credit_exhausted');
    await gone;
    expect(await run.exited).toBe(0);
    await run.dispose();
    expect(eventsOf(run.gateway, 'turn_ended')[0]).toMatchObject({
      reason: 'cancelled',
      error: { code: 'CANCELLED' },
    });
    expect(run.gateway.finalizes[0]).toMatchObject({ output: { error: { reason: 'credit_exhausted' } } });
  });

  test('whose program ignores it, in an endless loop, is killed after the grace and finalized', async () => {
    const run = await readyRun({
      source: `export default () => { process.stdout.write('ready\\n'); for (;;); }`,
      handOver: { stopGraceMs: 300 },
    });
    run.gateway.tellStop('cancelled');
    expect(await run.exited).toBe(0);
    await run.dispose();
    expect(run.gateway.finalizes).toEqual([ABORTED]);
  });

  test('stops its shells with all that they started', async () => {
    const run = await readyRun({
      source: `import { shell } from '@boardwalk-labs/workflow';
        export default async () => { console.log('ready'); await shell('sleep 300 & sleep 301; echo never').catch((e) => console.log(e.code)); return 1; }`,
    });
    run.gateway.tellStop('cancelled');
    expect(await run.exited).toBe(0);
    await allGone(run.workspaceDir);
    await run.dispose();
    expect(run.gateway.finalizes).toEqual([ABORTED]);
  });

  test('is aborted before the program was there, too', async () => {
    const run = await startRun({
      answers: { '_fleet/program': (_body, _res, gateway) => gateway.tellStop('cancelled') },
    });
    expect(await run.exited).toBe(0);
    expect(await run.leftovers()).toEqual([]);
    await run.dispose();
    expect(run.gateway.finalizes).toEqual([ABORTED]);
  });
});

describe('a program that returns while its calls go on', () => {
  test('completes: the calls are ended first, and no row comes after the finalize', async () => {
    const run = await startRun({
      source: `import { agent, shell, sleep } from '@boardwalk-labs/workflow';
        export default async () => {
          void agent('never answered').catch(() => 0); void shell('sleep 300').catch(() => 0); void sleep('1h').catch(() => 0);
          await sleep(1); return 'done'; }`,
      models: [['hang']],
    });
    expect(await run.exited).toBe(0);
    await allGone(run.workspaceDir);
    await run.dispose();
    expect(run.gateway.finalizes).toMatchObject([{ status: 'completed', output: 'done' }]);
    expect(eventsOf(run.gateway, 'turn_ended')).toMatchObject([{ reason: 'cancelled' }]);
    expect(run.gateway.calls.at(-1)?.path).toBe('finalize');
  });
});

describe('a run that loses its gateway', () => {
  const WAITING = `export default async () => { console.log('ready'); await new Promise((r) => setTimeout(r, 600_000)); }`;

  test('because it is gone: program killed, no finalize, exit code 70', async () => {
    const run = await readyRun({ source: WAITING });
    await run.gateway.stop();
    expect(await run.exited).toBe(70);
    await allGone(run.workspaceDir);
    expect(run.gateway.finalizes).toEqual([]);
    await run.dispose();
  });

  test('goes on when only the connection broke: the watch is made anew, and heard', async () => {
    const run = await readyRun({
      source: `import { sleep } from '@boardwalk-labs/workflow';
        export default async () => { console.log('ready'); await sleep('1h'); }`,
    });
    run.gateway.endWatches();
    await run.gateway.watched();
    run.gateway.tellStop('cancelled');
    expect(await run.exited).toBe(0);
    expect(run.gateway.finalizes).toEqual([ABORTED]);
    await run.dispose();
  });

  test('because no word comes in time: the same', async () => {
    const run = await readyRun({ source: WAITING, ttlMs: 1_500 });
    expect(await run.exited).toBe(70);
    await allGone(run.workspaceDir);
    await run.dispose();
    expect(run.gateway.finalizes).toEqual([]);
  });

  test('because another attempt has the run (410, or rows after a finalize): the same', async () => {
    for (const status of [410, 409]) {
      const { code, gateway } = await finishedRun({
        source: WAITING,
        answers: { telemetry: (_body, res) => json(res, status, { error: { code: 'FENCED', message: '' } }) },
      });
      expect({ code, finalizes: gateway.finalizes }).toEqual({ code: 70, finalizes: [] });
    }
  });

  test('before it ever had one: exit code 70 or 75, and a line that says why', async () => {
    const run = await startRun({ handOver: { gateway: { socketPath: '/nonexistent/g.s', bearer: 'x' } } });
    expect([70, 75]).toContain(await run.exited);
    expect(run.stderr()).toContain('ENOENT');
    await run.dispose();
  });
});

describe('a run process that is told to end', () => {
  test.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)(
    'by %s ends its program, drains its rows, and exits %i without a finalize (R23)',
    async (signal, code) => {
      const run = await readyRun({
        source: `export default async () => { console.log('ready'); await new Promise((r) => setTimeout(r, 600_000)); }`,
      });
      run.kill(signal);
      expect(await run.exited).toBe(code);
      await allGone(run.workspaceDir);
      expect(run.gateway.finalizes).toEqual([]);
      await run.dispose();
    },
  );

  test('by SIGTERM does not finalize a program that died of it, also when its rows are slow to leave', async () => {
    const run = await readyRun({
      source: `process.on('SIGTERM', () => { console.log('last words'); process.exit(0); });
        export default async () => { console.log('ready'); await new Promise((r) => setTimeout(r, 600_000)); }`,
      answers: {
        telemetry: (body, res, gateway) => {
          if (!JSON.stringify(body).includes('last words')) gateway.take(body, res);
          else setTimeout(() => gateway.take(body, res), 300);
        },
      },
    });
    run.kill('SIGTERM');
    expect(await run.exited).toBe(143);
    expect(run.gateway.finalizes).toEqual([]);
    expect(run.gateway.bodiesOf('finalize')).toEqual([]);
    await run.dispose();
  });

  test('without a hand-over says what it is', async () => {
    const { spawn } = await import('node:child_process');
    const runtime = new URL('../../../dist/sandbox/runtime.mjs', import.meta.url);
    const child = spawn(process.execPath, [runtime.pathname], { stdio: ['ignore', 'ignore', 'pipe'] });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect({ code, told: stderr.includes('without a hand-over') }).toEqual({ code: 1, told: true });
  });
});
