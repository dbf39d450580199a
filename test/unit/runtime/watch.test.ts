// The dead man's switch inside the runtime, on clocks that a test turns.

import { PassThrough } from 'node:stream';
import { expect, test, vi } from 'vitest';
import { encodeWatchLine } from '../../../src/contract/fleetCalls.js';
import type { Control } from '../../../src/runtime/control.js';
import { Watch } from '../../../src/runtime/watch.js';

interface Watched {
  readonly body: PassThrough;
  readonly clock: { monotonic: number; wall: number };
  readonly told: string[];
  readonly watch: Watch;
}

function watched(status = 200, goneMs = 60_000): Watched {
  const body = new PassThrough();
  const clock = { monotonic: 0, wall: 0 };
  const told: string[] = [];
  const control = { stream: () => Promise.resolve({ status, body }) } as unknown as Pick<Control, 'stream'>;
  const watch = new Watch({
    control,
    goneMs,
    onStop: (reason) => told.push(`stop ${reason}`),
    onLost: (why) => told.push(`lost: ${why}`),
    clocks: { monotonic: () => clock.monotonic, wall: () => clock.wall },
  });
  watch.start();
  return { body, clock, told, watch };
}

async function said(world: Watched, text: string): Promise<void> {
  world.body.write(text);
  await new Promise((resolve) => setImmediate(resolve));
}

const alive = (ttl_ms: number): string => encodeWatchLine({ t: 'alive', ttl_ms });

test('a stop is told once, whatever follows', async () => {
  const world = watched();
  await said(world, alive(60_000));
  await said(
    world,
    encodeWatchLine({ t: 'stop', reason: 'cancelled' }) +
      encodeWatchLine({ t: 'stop', reason: 'credit_exhausted' }),
  );
  world.watch.stop();
  expect(world.told).toEqual(['stop cancelled']);
});

test.each(['monotonic', 'wall'] as const)(
  'a line that was waiting while the process was frozen brings no passed deadline back (%s clock)',
  async (name) => {
    const world = watched();
    await said(world, alive(5_000));
    world.clock[name] = 5_001;
    await said(world, alive(60_000));
    expect(world.told).toEqual(['lost: the deadline passed']);
  },
);

test('silence beyond the deadline is a loss', async () => {
  const world = watched();
  const lost = new Promise<void>((resolve) => {
    const check = setInterval(() => {
      if (world.told.length === 0) return;
      clearInterval(check);
      resolve();
    }, 5);
  });
  await said(world, alive(10));
  await lost;
  expect(world.told).toEqual(['lost: no word from the gateway in time']);
});

test('a gateway that is gone, and not back in time, is a loss', async () => {
  const ended = watched(200, 10);
  await said(ended, alive(60_000));
  ended.body.end();
  await vi.waitFor(() => expect(ended.told).toEqual(['lost: the gateway ended the watch']));
});

test('a gateway that is back in time is no loss', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
  const lines = [new PassThrough(), new PassThrough()];
  const told: string[] = [];
  let connects = 0;
  const stream = (): Promise<unknown> => Promise.resolve({ status: 200, body: lines[connects++] });
  const watch = new Watch({
    control: { stream } as unknown as Pick<Control, 'stream'>,
    onStop: () => undefined,
    onLost: (why) => told.push(why),
  });
  watch.start();
  lines[0]?.end(alive(60_000));
  lines[1]?.write(alive(60_000));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(connects).toBe(2);
  // Longer than it may be gone: the timer of the first loss must not fire any more.
  await vi.advanceTimersByTimeAsync(10_000);
  watch.stop();
  vi.useRealTimers();
  expect(told).toEqual([]);
});

test('another status is a loss at once; after stop nothing is', async () => {
  const refused = watched(404);
  await new Promise((resolve) => setImmediate(resolve));
  expect(refused.told).toEqual(['lost: the gateway answered the watch with status 404']);
  const stopped = watched();
  await said(stopped, alive(60_000));
  stopped.watch.stop();
  stopped.body.end();
  await new Promise((resolve) => setImmediate(resolve));
  expect(stopped.told).toEqual([]);
});

test('lines that it does not know are skipped', async () => {
  const world = watched();
  await said(world, 'nonsense\n{"t":"news"}\n\n');
  await said(world, alive(60_000));
  world.watch.stop();
  expect(world.told).toEqual([]);
});
