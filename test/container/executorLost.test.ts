// Containers whose executor is killed or frozen: the dead man's switch ends them before the queue lock lapses, so that no
// successor ever runs beside them; and who comes back removes what is left of them.

import type Docker from 'dockerode';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LABEL } from '../../src/executor/sandbox/container/createOptions.js';
import { containersBelow, engineEnvironment, testEngine, testImage } from '../support/engine.js';
import { startLocalFleet, type FleetProcess, type LocalFleet } from '../support/localFleet.js';
import { startScaledExecutor } from '../support/scaledExecutor.js';

/** Scaled together (design section 5): lock, renewal, margin. */
const LOCK = [10_000, 1_500, 3_000] as const;
const AT_ONCE = 10;
const ROUNDS = 2;

/** At work until it was started a third time. */
const OUTLIVING = `
import { sleep } from '@boardwalk-labs/workflow';
export default async (input, { attempt }) => {
  console.log('attempt ' + attempt);
  if (attempt <= 2) await sleep('1h');
  return attempt;
};`;

interface Trial {
  readonly goneMs: number;
  /** What was left of the lock when its container was seen gone; negative: it had lapsed. */
  readonly sparedMs: number;
}

let docker: Docker;
let fleet: LocalFleet;
const executors: FleetProcess[] = [];

beforeAll(async () => {
  docker = await testEngine();
  fleet = await startLocalFleet({ executors: 0 });
});
afterAll(async () => {
  for (const each of executors) {
    each.child.kill('SIGCONT');
    await each.stop();
  }
  await fleet.stop();
  expect(await containersBelow(docker, fleet.dir)).toEqual([]);
});

async function startExecutors(names: readonly string[]): Promise<readonly FleetProcess[]> {
  const { DOCKER_HOST } = engineEnvironment();
  const started = await Promise.all(
    names.map((name) =>
      startScaledExecutor(fleet, {
        name,
        slots: 1,
        lock: LOCK,
        image: testImage(),
        environment: { DOCKER_HOST },
      }),
    ),
  );
  executors.push(...started);
  return started;
}

async function running(): Promise<readonly string[]> {
  const found = await containersBelow(docker, fleet.dir);
  return found.filter(({ State }) => State === 'running').map(({ Id }) => Id);
}

/** Every one of the runs says that its attempt `attempt` is at work, each in a container. */
async function atWork(ids: readonly string[], attempt: number): Promise<void> {
  for (const id of ids)
    while (!(await fleet.admin.rows(id)).some(({ event }) => event['text'] === `attempt ${attempt}`))
      await pause(100);
}

/** When the first of the fleet's queue locks lapses, on this process's clock. */
async function firstLapse(locks: number): Promise<number> {
  const keys = (await fleet.redis.cli('KEYS', '*:lock')) as string[];
  expect(keys).toHaveLength(locks);
  const left = await Promise.all(keys.map((key) => fleet.redis.cli('PTTL', key) as Promise<number>));
  return performance.now() + Math.min(...left);
}

/** Strikes every executor at once and watches its container; the lock that lapses first bounds all of them. */
async function strike(
  struck: readonly FleetProcess[],
  signal: 'SIGKILL' | 'SIGSTOP',
): Promise<readonly Trial[]> {
  let left = await running();
  expect(left).toHaveLength(struck.length);
  for (const each of struck) each.child.kill(signal);
  const at = performance.now();
  const lapsesAt = await firstLapse(struck.length);
  const trials: Trial[] = [];
  while (left.length > 0) {
    const now = await running();
    for (const id of left)
      if (!now.includes(id))
        trials.push({ goneMs: performance.now() - at, sparedMs: lapsesAt - performance.now() });
    left = left.filter((id) => now.includes(id));
    await pause(20);
  }
  return trials;
}

function told(what: string, trials: readonly Trial[]): string {
  const before = trials.filter(({ sparedMs }) => sparedMs > 0).length;
  const slowest = Math.round(Math.max(...trials.map(({ goneMs }) => goneMs)));
  const least = Math.round(Math.min(...trials.map(({ sparedMs }) => sparedMs)));
  return `${what}: ${before} of ${trials.length} containers gone before their lock lapsed (slowest ${slowest} ms, least to spare ${least} ms)\n`;
}

describe('the container of an executor', () => {
  it('that is frozen, or killed, is gone before the queue lock lapses: 20 of 20 each (P12, P32)', async () => {
    const names = Array.from({ length: AT_ONCE }, (_, n) => `work-${n}`);
    const frozen: Trial[] = [];
    const killed: Trial[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const started = await startExecutors(names);
      const ids = await fleet.admin.createRuns({ source: OUTLIVING, count: AT_ONCE });
      await atWork(ids, 1);
      frozen.push(...(await strike(started, 'SIGSTOP')));
      for (const each of started) each.child.kill('SIGCONT');
      await atWork(ids, 2);
      killed.push(...(await strike(started, 'SIGKILL')));
      // Whoever comes back under the same work directories finishes what was begun.
      const after = await startExecutors(names.slice(0, 2));
      const views = await fleet.admin.finished(ids);
      expect(views.map(({ output, finalizes }) => ({ output, finalizes }))).toEqual(
        Array.from(views, () => ({ output: 3, finalizes: 1 })),
      );
      for (const each of after) expect(await each.stop()).toBe(0);
    }
    process.stdout.write(told('frozen', frozen));
    process.stdout.write(told('killed', killed));
    for (const trials of [frozen, killed])
      expect(trials.filter(({ sparedMs }) => sparedMs > 0)).toHaveLength(AT_ONCE * ROUNDS);
    expect(await fleet.admin.report()).toMatchObject({ double_finalized: 0, cursor_regressions: 0 });
  }, 400_000);

  it('that is killed is removed by the one that is started after it, at once and running (P31, P32, P33)', async () => {
    const [first] = await startExecutors(['again']);
    const ids = await fleet.admin.createRuns({ source: OUTLIVING });
    await atWork(ids, 1);
    const [left] = await containersBelow(docker, fleet.dir);
    // Frozen, its switch can't end it: only somebody else can.
    await docker.getContainer(left?.Id ?? '').pause();
    await first?.stop('SIGKILL');
    const [second] = await startExecutors(['again']);
    await second?.line('leftover containers removed');
    const now = await containersBelow(docker, fleet.dir);
    expect(now.map(({ Labels }) => Labels[LABEL.sandbox])).not.toContain(left?.Labels[LABEL.sandbox]);
    await atWork(ids, 2);
    await fleet.admin.call('POST', `runs/${ids[0] ?? ''}/cancel`);
    expect((await fleet.admin.finished(ids))[0]?.status).toBe('cancelled');
    expect(await second?.stop()).toBe(0);
  });
});
