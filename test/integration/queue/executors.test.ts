import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ExecutorRecord, Fleet } from '../../../src/queue/fleet.js';
import { openTestFleet } from '../../support/fleet.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';

let redis: TestRedis;
let fleet: Fleet;
beforeAll(async () => {
  redis = await startTestRedis();
  fleet = await openTestFleet(redis);
});
afterAll(async () => {
  await fleet.close();
  await redis.stop();
});

const record = (id: string, changes: Partial<ExecutorRecord> = {}): ExecutorRecord => ({
  id,
  host: 'host-1',
  bootId: null,
  pool: 'default',
  labels: [],
  slots: 4,
  busy: 1,
  version: '0.1.0',
  state: 'ready',
  sandbox: 'process',
  startedAtMs: 1,
  atMs: 2,
  ...changes,
});

it('executors are seen as long as they speak, each with its last word', async () => {
  await fleet.executors.put(record('b'));
  await fleet.executors.put(record('a', { pool: 'other' }));
  await fleet.executors.put(record('b', { busy: 3, state: 'draining' }));
  expect(await fleet.executors.live()).toEqual([
    record('a', { pool: 'other' }),
    record('b', { busy: 3, state: 'draining' }),
  ]);
  expect(await fleet.executors.live('other')).toEqual([record('a', { pool: 'other' })]);
  await fleet.executors.remove('a');
  await fleet.executors.remove('b');
  expect(await fleet.executors.live()).toEqual([]);
});

it('an executor that has died is forgotten by itself, and leaves nothing', async () => {
  await fleet.executors.put(record('short'), 20);
  await expect.poll(() => fleet.executors.live()).toEqual([]);
  expect([...(await redis.dump()).keys()].filter((key) => key.includes('executor'))).toEqual([]);
});

it('an executor of a newer version, whose record we can not read, hides no other', async () => {
  await fleet.executors.put(record('old'));
  await fleet.executors.put(record('new'));
  const newer = JSON.stringify({ ...record('new'), state: 'dreaming' });
  await redis.cli('SET', fleet.keys.executor('new'), newer);
  expect(await fleet.executors.live()).toEqual([record('old')]);
});
