import { once } from 'node:events';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DoorDependencies } from '../../../src/executor/gateway/doorDependencies.js';
import { bare } from '../../unit/gateway/overSocket.js';
import { json, Worlds } from './doorWorld.js';

const worlds = new Worlds();
beforeAll(() => worlds.start());
afterAll(() => worlds.stop());

const FINALIZE = { status: 'completed', output: { answer: 42 }, workerId: 'whoever' };

/** Lanes whose appends fail a few times, as those of a Redis that refuses writes or is away. */
function failing(times: number): (real: DoorDependencies['lanes']) => DoorDependencies['lanes'] {
  return (real) => {
    let left = times;
    const fail = (): void => {
      left -= 1;
      if (left >= 0) throw new Error('MISCONF Redis is configured to save RDB snapshots');
    };
    return {
      append: async (...args) => {
        fail();
        return real.append(...args);
      },
      appendFinalize: async (...args) => {
        fail();
        return real.appendFinalize(...args);
      },
    };
  };
}

describe('telemetry', () => {
  test('is answered when the rows are in the lane, as they were sent', async () => {
    const world = await worlds.open();
    const frames = [world.frame(1), world.frame(2, { kind: 'unknown_to_us' }), world.frame(1_000_001)];
    expect((await world.call('POST', 'telemetry', { frames })).status).toBe(204);
    expect(await world.lane()).toMatchObject(frames.map((frame) => ({ kind: 'row', frame })));
    expect(world.upstream.seen).toEqual([]);
  });

  test('an idle lane is flushed once, and the run counts as running from its first row', async () => {
    const world = await worlds.open();
    expect(world.running.count).toBe(0);
    await world.call('POST', 'telemetry', { frames: [] });
    expect(world.running.count).toBe(0);
    await world.call('POST', 'telemetry', { frames: [world.frame(1)] });
    await world.call('POST', 'telemetry', { frames: [world.frame(2)] });
    expect(world.flushed).toEqual([world.runId]);
    expect(world.running.count).toBe(1);
  });

  test('a repeated batch is a success and changes nothing', async () => {
    const world = await worlds.open();
    const frames = [world.frame(1), world.frame(2)];
    for (let times = 0; times < 3; times += 1) {
      expect((await world.call('POST', 'telemetry', { frames })).status).toBe(204);
    }
    expect(await world.lane()).toHaveLength(2);
  });

  test('batches that come at the same time go in one after the other (R7)', async () => {
    const inside = { now: 0, most: 0 };
    const world = await worlds.open({
      lanes: (real) => ({
        ...real,
        append: async (...args) => {
          inside.most = Math.max(inside.most, (inside.now += 1));
          try {
            return await real.append(...args);
          } finally {
            inside.now -= 1;
          }
        },
        appendFinalize: (...args) => real.appendFinalize(...args),
      }),
    });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        world.call('POST', 'telemetry', { frames: [world.frame(index * 1_000_000 + 1)] }),
      ),
    );
    expect(answers.map((answer) => answer.status)).toEqual(Array(20).fill(204));
    expect(inside.most).toBe(1);
  });

  test('a batch that is slow to arrive is not overtaken by a later one, which would make it a repeat', async () => {
    const world = await worlds.open();
    const body = JSON.stringify({ frames: [world.frame(1)] });
    const { socket, said } = await bare(world.open.socketPath);
    const asked = [
      `POST ${world.path('telemetry')} HTTP/1.1`,
      'host: x',
      `authorization: Bearer ${world.open.bearer}`,
      `content-length: ${body.length}`,
      'connection: close',
      'expect: 100-continue',
    ];
    socket.write(`${asked.join('\r\n')}\r\n\r\n`);
    await once(socket, 'data');
    socket.write(body.slice(0, 5));
    const second = world.call('POST', 'telemetry', { frames: [world.frame(2)] });
    while (world.calls.count < 2) await new Promise((resolve) => setImmediate(resolve));
    socket.write(body.slice(5));
    expect((await second).status).toBe(204);
    expect(await said).toMatch(/HTTP\/1.1 204 /);
    expect(await world.lane()).toMatchObject([{ cursor: 1 }, { cursor: 2 }]);
  });

  test('a batch larger than one write goes in whole', async () => {
    const world = await worlds.open();
    const frames = Array.from({ length: 2_500 }, (_, index) => world.frame(index + 1));
    expect((await world.call('POST', 'telemetry', { frames })).status).toBe(204);
    expect(await world.lane()).toHaveLength(2_500);
  });

  test('a bad frame refuses its whole batch and names it; nothing of it is in the lane', async () => {
    const world = await worlds.open();
    const answer = await world.call('POST', 'telemetry', {
      frames: [world.frame(1), world.frame(2, { seq: 3 })],
    });
    expect([answer.status, answer.json()]).toMatchObject([400, { error: { code: 'VALIDATION_FAILED' } }]);
    expect(answer.text).toContain('frames[1]');
    expect((await world.call('POST', 'telemetry', undefined, { body: '{"frames":[' })).status).toBe(400);
    expect(await world.lane()).toEqual([]);
  });

  test('a secret that was resolved never reaches the lane (R16)', async () => {
    const world = await worlds.open();
    world.upstream.on('secrets/resolve', json(200, { value: 'hunter2-value' }));
    await world.call('POST', 'secrets/resolve', { name: 'A' });
    const delta = (cursor: number, text: string): string =>
      world.frame(cursor, { kind: 'text_delta', turnId: 'T', blockId: 'text-1', text });
    const frames = [
      delta(1, 'it is hunter'),
      delta(2, '2-value, yes'),
      world.frame(3, { name: 'hunter2-value' }),
    ];
    expect((await world.call('POST', 'telemetry', { frames })).status).toBe(204);
    expect(JSON.stringify(await world.lane())).not.toContain('hunter');
  });

  test('waits while Redis refuses writes, and loses nothing (P8)', async () => {
    const world = await worlds.open({ lanes: failing(2) });
    expect((await world.call('POST', 'telemetry', { frames: [world.frame(1)] })).status).toBe(204);
    expect(await world.lane()).toHaveLength(1);
  });

  test('waits while Redis is away, and goes on when it is back (P2)', async () => {
    const own = new Worlds();
    await own.start();
    try {
      const world = await own.open();
      expect((await world.call('POST', 'telemetry', { frames: [world.frame(1)] })).status).toBe(204);
      // A restart with persistence, as far as the lane can tell: the server is gone and comes back with its data.
      await own.redis.shutdown();
      const waiting = world.call('POST', 'telemetry', { frames: [world.frame(2)] });
      while (world.calls.count < 2) await new Promise((resolve) => setImmediate(resolve));
      await own.redis.start();
      expect((await waiting).status).toBe(204);
      expect(await world.lane()).toMatchObject([{ cursor: 1 }, { cursor: 2 }]);
    } finally {
      await own.stop();
    }
  });

  test('leaves neither frames nor tokens in the log when Redis fails', async () => {
    const lines: string[] = [];
    const log = pino({ level: 'trace' }, { write: (line) => lines.push(line) });
    const world = await worlds.open({
      door: { log },
      lanes: (real) => {
        let failed = false;
        return {
          append: async (runId, token, rows) => {
            if (failed) return real.append(runId, token, rows);
            failed = true;
            // As the Redis client does: the command that failed hangs on the error.
            throw Object.assign(new Error('OOM command not allowed'), { command: { args: [token, rows] } });
          },
          appendFinalize: (...args) => real.appendFinalize(...args),
        };
      },
    });
    await world.call('POST', 'telemetry', { frames: [world.frame(1, { name: 'a-name-in-a-row' })] });
    expect(lines.join()).toContain('OOM command not allowed');
    expect(lines.join()).not.toContain('a-name-in-a-row');
    expect(lines.join()).not.toContain(world.attemptToken);
    expect(lines.join()).not.toContain(world.open.bearer);
  });

  test('ends with 410 when the fence falls while it waits for Redis (P12)', async () => {
    const world = await worlds.open({
      lanes: (real) => ({
        ...real,
        append: () => {
          world.fence.fall('lock_lost');
          throw new Error('Connection is closed.');
        },
      }),
    });
    const answer = await world.call('POST', 'telemetry', { frames: [world.frame(1)] });
    expect([answer.status, answer.json()]).toMatchObject([410, { error: { code: 'FENCED' } }]);
  });

  test('of an attempt that was superseded is refused with 410 and not in the lane (P12)', async () => {
    const world = await worlds.open({ door: { attemptToken: 'of-an-earlier-attempt' } });
    const answer = await world.call('POST', 'telemetry', { frames: [world.frame(1)] });
    expect([answer.status, answer.json()]).toMatchObject([410, { error: { code: 'FENCED' } }]);
    expect(await world.lane()).toEqual([]);
    expect(world.running.count).toBe(0);
  });
});

describe('finalize', () => {
  test('is the last entry of the lane, without the worker id of the sandbox, and never sent from here (R17)', async () => {
    const world = await worlds.open();
    await world.call('POST', 'telemetry', { frames: [world.frame(1)] });
    expect((await world.call('POST', 'finalize', FINALIZE)).status).toBe(204);
    const entries = await world.lane();
    expect(entries.map((entry) => entry.kind)).toEqual(['row', 'finalize']);
    const [, last] = entries;
    expect(last?.kind === 'finalize' && JSON.parse(last.body)).toEqual({
      status: 'completed',
      output: { answer: 42 },
    });
    expect(await world.door.finalized).toEqual({ status: 'completed', output: { answer: 42 } });
    expect(world.door.finalizedBody).toEqual({ status: 'completed', output: { answer: 42 } });
    expect(world.upstream.seen).toEqual([]);
  });

  test('can not overtake rows that the door took before it', async () => {
    const world = await worlds.open();
    const rows = Array.from({ length: 10 }, (_, index) =>
      world.call('POST', 'telemetry', { frames: [world.frame(index + 1)] }),
    );
    await rows[0];
    await Promise.all(rows);
    const [late, finalize] = await Promise.all([
      world.call('POST', 'telemetry', { frames: [world.frame(11)] }),
      world.call('POST', 'finalize', FINALIZE),
    ]);
    expect(finalize.status).toBe(204);
    const entries = await world.lane();
    expect(entries.at(-1)?.kind).toBe('finalize');
    expect(late.status).toBe(entries.length === 12 ? 204 : 409);
  });

  test('repeated is a success; rows after it are refused', async () => {
    const world = await worlds.open();
    expect((await world.call('POST', 'finalize', FINALIZE)).status).toBe(204);
    expect((await world.call('POST', 'finalize', FINALIZE)).status).toBe(204);
    const late = await world.call('POST', 'telemetry', { frames: [world.frame(1)] });
    expect([late.status, late.json()]).toMatchObject([409, { error: { code: 'FINALIZED' } }]);
    expect(await world.lane()).toHaveLength(1);
    expect(world.flushed.length).toBeGreaterThan(0);
  });

  test('of an unknown status, or without one, is a 400 and the run goes on', async () => {
    const world = await worlds.open();
    for (const body of [{}, { status: 'cancelled', output: null, workerId: 'w' }, [], 'x']) {
      expect((await world.call('POST', 'finalize', body)).status).toBe(400);
    }
    expect(world.door.finalizedBody).toBeUndefined();
    expect((await world.call('POST', 'finalize', FINALIZE)).status).toBe(204);
  });

  test('after a stop is taken as it comes', async () => {
    const world = await worlds.open();
    world.door.stop('cancelled');
    expect((await world.call('POST', 'finalize', FINALIZE)).status).toBe(204);
    expect(await world.door.finalized).toMatchObject({ status: 'completed' });
  });

  test('an error message is cleaned of secrets, an output is the program’s own affair', async () => {
    const failed = await worlds.open();
    failed.secrets.add('hunter2-value');
    const error = { code: 'BOOM', message: 'saw hunter2-value', hint: 'not hunter2-value' };
    await failed.call('POST', 'finalize', { status: 'failed', output: { error, extra: 1 }, workerId: 'w' });
    expect(await failed.door.finalized).toEqual({
      status: 'failed',
      output: { error: { code: 'BOOM', message: 'saw [REDACTED]', hint: 'not [REDACTED]' }, extra: 1 },
    });
    const completed = await worlds.open();
    completed.secrets.add('hunter2-value');
    await completed.call('POST', 'finalize', { status: 'completed', output: 'hunter2-value', workerId: 'w' });
    expect(await completed.door.finalized).toMatchObject({ output: 'hunter2-value' });
  });

  test('of a sandbox that left without waiting is in the lane when the door has closed', async () => {
    let entered: () => void = () => undefined;
    const appending = new Promise<void>((resolve) => (entered = resolve));
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const world = await worlds.open({
      lanes: (real) => ({
        append: (...args) => real.append(...args),
        appendFinalize: async (...args) => {
          entered();
          await released;
          return real.appendFinalize(...args);
        },
      }),
    });
    const body = JSON.stringify(FINALIZE);
    const { socket, said } = await bare(world.open.socketPath);
    socket.write(
      `POST ${world.path('finalize')} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${world.open.bearer}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await appending;
    socket.destroy();
    await said;
    const closing = world.open.close();
    release();
    await closing;
    expect(world.door.finalizedBody).toEqual({ status: 'completed', output: { answer: 42 } });
    expect(await world.lane()).toHaveLength(1);
  });

  test('of a superseded attempt is refused and ends nothing (P12)', async () => {
    const world = await worlds.open({ door: { attemptToken: 'of-an-earlier-attempt' } });
    expect((await world.call('POST', 'finalize', FINALIZE)).status).toBe(410);
    expect(world.door.finalizedBody).toBeUndefined();
    expect(await world.lane()).toEqual([]);
  });
});
