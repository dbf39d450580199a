import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { open, textOf } from '../../unit/gateway/overSocket.js';
import { cut, json, type Respond, RUN_TOKEN, stream, Worlds } from './doorWorld.js';

const worlds = new Worlds();
beforeAll(() => worlds.start());
afterAll(() => worlds.stop());

const PING = '{"t":"ping"}\n';
const DELTA = '{"t":"delta","text":"für 🙂"}\n';
const RESULT =
  '{"t":"result","turn":{"text":"für 🙂","toolCalls":[],"wantsTools":false},"modelRef":"m/1","costMicros":1}\n';
const ASKED = { model: 'm', messages: [{ role: 'user', content: 'hi' }], tools: [] };

function framesOf(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('a model call', () => {
  test('is streamed through as whole lines, with the real token and the body as it was sent', async () => {
    const world = await worlds.open();
    world.upstream.on('inference', stream([PING, DELTA, RESULT], 'end'));
    const answer = await world.call('POST', 'inference', ASKED);
    expect([answer.status, answer.text]).toEqual([200, PING + DELTA + RESULT]);
    expect(answer.headers['content-type']).toBe('application/x-ndjson');
    const [seen] = world.upstream.seen;
    expect(seen?.headers).toMatchObject({
      authorization: `Bearer ${RUN_TOKEN}`,
      accept: 'application/x-ndjson',
    });
    expect(seen?.body).toBe(JSON.stringify(ASKED));
  });

  test('gives each line on as soon as it is whole, and never a part of one', async () => {
    const world = await worlds.open();
    const bytes = Buffer.from(DELTA);
    let release: () => void = () => undefined;
    world.upstream.on('inference', (_seen, res) => {
      res.writeHead(200, { 'content-type': 'application/x-ndjson' });
      res.write(Buffer.concat([Buffer.from(PING), bytes.subarray(0, -4)]));
      release = () => res.end(Buffer.concat([bytes.subarray(-4), Buffer.from(RESULT)]));
    });
    const { res } = await open(world.open.socketPath, {
      method: 'POST',
      path: world.path('inference'),
      bearer: world.open.bearer,
      body: JSON.stringify(ASKED),
    });
    const [first] = (await once(res, 'data')) as [Buffer];
    expect(first.toString()).toBe(PING);
    release();
    expect(await textOf(res)).toBe(DELTA + RESULT);
  });

  test('is made again after a cut connection, a 503, a 504 and a stream of pings that broke', async () => {
    const world = await worlds.open();
    world.upstream.on(
      'inference',
      cut,
      json(503, {}),
      json(504, {}),
      stream([PING, PING, '{"t":"del'], 'drop'),
      stream([PING, DELTA, RESULT], 'end'),
    );
    const answer = await world.call('POST', 'inference', ASKED);
    expect([answer.status, answer.text]).toEqual([200, PING + PING + PING + DELTA + RESULT]);
    expect(world.upstream.calls('inference').map((seen) => seen.body)).toEqual(
      Array.from({ length: 5 }, () => JSON.stringify(ASKED)),
    );
  });

  test('that began with garbage is made again, and the garbage never gets in', async () => {
    const world = await worlds.open();
    world.upstream.on('inference', stream([PING, '<html>busy</html>\n'], 'end'), stream([RESULT], 'end'));
    expect((await world.call('POST', 'inference', ASKED)).text).toBe(PING + RESULT);
  });

  test('of which something was shown is never made again; its break is told as a frame (P49)', async () => {
    const broken: readonly (readonly string[])[] = [
      [DELTA],
      ['{"t":"reasoning","text":"x"}\n'],
      ['{"t":"reset"}\n'],
      [DELTA, 'garbage\n'],
    ];
    for (const pieces of broken) {
      const world = await worlds.open();
      world.upstream.on('inference', stream(pieces, 'drop'));
      const frames = framesOf((await world.call('POST', 'inference', ASKED)).text);
      expect(frames.map((frame) => frame['t']).at(-1)).toBe('error');
      expect(frames.at(-1)).toMatchObject({ error: { code: 'PROVIDER_ERROR' } });
      expect(frames).toHaveLength(2);
      expect(world.upstream.calls('inference')).toHaveLength(1);
    }
  });

  test('that has its result is whole, however its connection ends; a reset after it opens it again', async () => {
    const whole = await worlds.open();
    whole.upstream.on('inference', stream([DELTA, RESULT], 'drop'));
    expect((await whole.call('POST', 'inference', ASKED)).text).toBe(DELTA + RESULT);
    const reopened = await worlds.open();
    reopened.upstream.on('inference', stream([DELTA, RESULT, '{"t":"reset"}\n'], 'drop'));
    const frames = framesOf((await reopened.call('POST', 'inference', ASKED)).text);
    expect(frames.map((frame) => frame['t'])).toEqual(['delta', 'result', 'reset', 'error']);
  });

  test('that ends in order without a result is not ours to judge', async () => {
    const world = await worlds.open();
    world.upstream.on('inference', stream([PING], 'end'));
    expect((await world.call('POST', 'inference', ASKED)).text).toBe(PING);
    expect(world.upstream.calls('inference')).toHaveLength(1);
  });

  test('whose last line has no end gets one', async () => {
    const world = await worlds.open();
    world.upstream.on('inference', stream([DELTA, RESULT.trimEnd()], 'end'));
    expect((await world.call('POST', 'inference', ASKED)).text).toBe(DELTA + RESULT);
  });

  test.each([400, 402, 404, 429, 500, 502])('answered %i is passed on and not made again', async (status) => {
    const world = await worlds.open();
    const body = { error: { code: 'X', message: 'no' } };
    world.upstream.on('inference', json(status, body));
    const answer = await world.call('POST', 'inference', ASKED);
    expect([answer.status, answer.json()]).toEqual([status, body]);
    expect(world.upstream.calls('inference')).toHaveLength(1);
  });

  test('ends after five attempts, with what the last one said', async () => {
    const refused = await worlds.open();
    refused.upstream.on('inference', json(503, { error: { code: 'BUSY', message: 'later' } }));
    const answer = await refused.call('POST', 'inference', ASKED);
    expect([answer.status, answer.json()]).toEqual([503, { error: { code: 'BUSY', message: 'later' } }]);
    expect(refused.upstream.calls('inference')).toHaveLength(5);

    const gone = await worlds.open();
    gone.upstream.on('inference', cut);
    const failed = await gone.call('POST', 'inference', ASKED);
    expect([failed.status, failed.json()]).toMatchObject([
      502,
      { error: { code: 'CONTROL_PLANE_UNREACHABLE' } },
    ]);
    expect(gone.upstream.calls('inference')).toHaveLength(5);
  });

  test('refused after its pings were passed on ends with an error frame that has the refusal’s message', async () => {
    const world = await worlds.open();
    world.upstream.on(
      'inference',
      stream([PING], 'drop'),
      json(402, { error: { code: 'X', message: 'no credit' } }),
    );
    const frames = framesOf((await world.call('POST', 'inference', ASKED)).text);
    expect(frames).toEqual([
      { t: 'ping' },
      { t: 'error', error: { code: 'PROVIDER_ERROR', message: 'no credit' } },
    ]);
  });

  test('is ended upstream when the sandbox hangs up', async () => {
    const world = await worlds.open();
    const upstreamClosed = closeOf(world, stream([DELTA], 'hold'));
    const { req, res } = await open(world.open.socketPath, {
      method: 'POST',
      path: world.path('inference'),
      bearer: world.open.bearer,
      body: JSON.stringify(ASKED),
    });
    res.on('error', () => undefined);
    await once(res, 'data');
    req.destroy();
    await upstreamClosed;
  });

  test('is cut on both sides when the fence falls (P12)', async () => {
    const world = await worlds.open();
    const upstreamClosed = closeOf(world, stream([DELTA], 'hold'));
    const { res } = await open(world.open.socketPath, {
      method: 'POST',
      path: world.path('inference'),
      bearer: world.open.bearer,
      body: JSON.stringify(ASKED),
    });
    await once(res, 'data');
    const end = new Promise((resolve) => res.on('error', resolve));
    res.resume();
    world.fence.fall('lock_expiring');
    expect(await end).toBeInstanceOf(Error);
    await upstreamClosed;
  });

  test('waits with the next attempt only as long as somebody wants it', async () => {
    let paused: () => void = () => undefined;
    const pausing = new Promise<void>((resolve) => (paused = resolve));
    const world = await worlds.open({
      door: {
        pause: async (_ms, signal) => {
          paused();
          await new Promise<void>((resolve) => {
            signal.addEventListener('abort', () => resolve(), { once: true });
          });
        },
      },
    });
    world.upstream.on('inference', json(503, {}));
    const answer = world.call('POST', 'inference', ASKED);
    await pausing;
    world.fence.fall('lock_lost');
    expect((await answer).status).toBe(410);
    expect(world.upstream.calls('inference')).toHaveLength(1);
  });

  test('of a sandbox that doesn’t read makes upstream wait instead of filling the memory', async () => {
    const world = await worlds.open();
    const line = `{"t":"delta","text":"${'x'.repeat(64 * 1024)}"}\n`;
    const lines = 400;
    const sent = { lines: 0 };
    world.upstream.on('inference', (_seen, res) => {
      res.writeHead(200);
      const more = (): void => {
        while (sent.lines < lines) {
          sent.lines += 1;
          if (!res.write(line)) {
            res.once('drain', more);
            return;
          }
        }
        res.end(RESULT);
      };
      more();
    });
    const { res } = await open(world.open.socketPath, {
      method: 'POST',
      path: world.path('inference'),
      bearer: world.open.bearer,
      body: JSON.stringify(ASKED),
    });
    await once(res, 'readable');
    // Nothing moves any more once the buffers on the way are full.
    for (let seen = -1; seen !== sent.lines;) {
      seen = sent.lines;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(sent.lines).toBeLessThan(lines);
    const text = await textOf(res);
    expect(text).toHaveLength(lines * line.length + RESULT.length);
  });
});

function closeOf(world: Awaited<ReturnType<Worlds['open']>>, respond: Respond): Promise<void> {
  return new Promise((resolve) => {
    world.upstream.on('inference', (seen, res, req) => {
      res.on('close', () => resolve());
      respond(seen, res, req);
    });
  });
}
