import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLocalFleet, type FleetProcess, type LocalFleet } from '../../support/localFleet.js';
import { startScaledExecutor } from '../../support/scaledExecutor.js';

/** Writes a beat with its attempt every 20 ms, for as long as the first attempt lives; a later one ends soon. */
const BEATING = `
import { appendFileSync } from 'node:fs';
export default async function run(input, context) {
  const beat = () => appendFileSync(input.file, context.attempt + ' ' + process.pid + ' ' + Date.now() + '\\n');
  const beats = context.attempt === 1 ? 100000 : 20;
  for (let i = 0; i < beats; i += 1) {
    beat();
    if (i % 10 === 0) console.log('beat ' + i);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return 'attempt ' + context.attempt;
}`;

interface Beat {
  readonly attempt: number;
  readonly at: number;
}

describe('a run whose executor goes away', () => {
  let fleet: LocalFleet;
  const executors: FleetProcess[] = [];
  beforeAll(async () => {
    fleet = await startLocalFleet({ executors: 0 });
  });
  afterAll(async () => {
    for (const each of executors) {
      each.child.kill('SIGCONT');
      await each.stop('SIGKILL');
    }
    await fleet.stop();
  });

  async function executor(): Promise<FleetProcess> {
    const started = await startScaledExecutor(fleet, { name: `scaled-${executors.length + 1}` });
    executors.push(started);
    return started;
  }

  async function beats(file: string): Promise<readonly Beat[]> {
    const text = await readFile(file, 'utf8').catch(() => '');
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => ({ attempt: Number(line.split(' ')[0]), at: Number(line.split(' ')[2]) }));
  }

  /** Starts a beating run and resolves when its first attempt is at work on `first`. */
  async function beating(name: string): Promise<{ readonly id: string; readonly file: string }> {
    const file = join(fleet.dir, name);
    const [id = ''] = await fleet.admin.createRuns({ source: BEATING, input: { file } });
    while ((await beats(file)).length < 5) await pause(20);
    return { id, file };
  }

  /** The run ended once, by its second attempt, which began after the last sign of life of the first. */
  async function expectTakenOver(id: string, file: string): Promise<void> {
    const [view] = await fleet.admin.finished([id]);
    expect(view).toMatchObject({ status: 'completed', output: 'attempt 2', attempts: 1, finalizes: 1 });
    const all = await beats(file);
    const lastOfFirst = Math.max(...all.filter((beat) => beat.attempt === 1).map((beat) => beat.at));
    const firstOfSecond = Math.min(...all.filter((beat) => beat.attempt === 2).map((beat) => beat.at));
    expect(firstOfSecond).toBeGreaterThan(lastOfFirst);
    const cursors = (await fleet.admin.rows(id)).map((row) => row.cursor);
    expect(cursors).toEqual([...cursors].sort((a, b) => a - b));
    expect(await fleet.admin.report()).toMatchObject({ double_finalized: 0, cursor_regressions: 0 });
  }

  it('by kill -9 is started again elsewhere once its lock has lapsed and its program is gone (P12, P30)', async () => {
    const first = await executor();
    const { id, file } = await beating('killed');
    await executor();
    await first.stop('SIGKILL');
    await expectTakenOver(id, file);
  });

  it('by being frozen longer than its lock is fenced when it wakes, and leaves its successor alone (P12)', async () => {
    for (const each of executors) await each.stop('SIGKILL');
    const first = await executor();
    const { id, file } = await beating('frozen');
    await executor();
    first.child.kill('SIGSTOP');
    await expectTakenOver(id, file);
    first.child.kill('SIGCONT');
    await first.line('attempt fenced');
  });

  it('by a second signal is handed back and started again at once, without waiting for a lock', async () => {
    for (const each of executors) await each.stop('SIGKILL');
    const first = await executor();
    const { id, file } = await beating('handed');
    await executor();
    first.child.kill('SIGTERM');
    // Two signals in one moment may arrive as one.
    await pause(200);
    first.child.kill('SIGTERM');
    await first.line('attempt handed back');
    await expectTakenOver(id, file);
    expect(await first.exited).toBe(0);
  });
});
