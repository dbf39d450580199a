// Rows on their way to the gateway: tried again, halved, replaced by a notice, or given up for good.

import { expect, test } from 'vitest';
import type { ControlAnswer, ControlCall } from '../../../src/runtime/control.js';
import { GatewayError } from '../../../src/runtime/control.js';
import type { Row } from '../../../src/runtime/eventStream.js';
import { deliver, DeliveryLost, rowDelivery } from '../../../src/runtime/rowDelivery.js';

const ROWS: readonly Row[] = ['a', 'bad', 'c', 'd'].map((text, index) => ({
  cursor: index + 1,
  frame: JSON.stringify({
    cursor: index + 1,
    event: { runId: 'r1', turnId: 't', seq: index + 1, t: 1, kind: 'text_delta', blockId: 'b', text },
  }),
}));

function gateway(answer: (frames: readonly string[], call: number) => number | Error): {
  readonly control: { call: (call: ControlCall) => Promise<ControlAnswer> };
  readonly taken: string[];
} {
  const taken: string[] = [];
  let calls = 0;
  return {
    taken,
    control: {
      call: ({ body }) => {
        const { frames } = body as { frames: string[] };
        calls += 1;
        const status = answer(frames, calls);
        if (status instanceof Error) return Promise.reject(status);
        if (status === 204) taken.push(...frames);
        return Promise.resolve({ status, body: Buffer.alloc(0) });
      },
    },
  };
}

function options(
  control: ReturnType<typeof gateway>['control'],
): Parameters<typeof rowDelivery>[0] & { readonly lost: string[] } {
  const lost: string[] = [];
  return {
    control,
    signal: new AbortController().signal,
    log: () => undefined,
    onLost: (why) => lost.push(why),
    lost,
  };
}

test('a refused batch is halved until the bad row is alone, a notice takes its cursor, the order holds', async () => {
  const { control, taken } = gateway((frames) =>
    frames.some((frame) => frame.includes('"bad"')) ? 413 : 204,
  );
  await rowDelivery(options(control))(ROWS);
  const rows = taken.map(
    (frame) => JSON.parse(frame) as { cursor: number; event: { kind: string; text: string; seq: number } },
  );
  expect(rows.map((row) => row.cursor)).toEqual([1, 2, 3, 4]);
  expect(rows[1]?.event).toMatchObject({ kind: 'program_output', seq: 2, turnId: 'r1', stream: 'stderr' });
  expect(rows[1]?.event.text).toContain('text_delta');
});

test('a slow or failing gateway is tried again until it takes the rows', async () => {
  const { control, taken } = gateway((_frames, call) =>
    call === 1 ? new GatewayError('GATEWAY_TIMEOUT', 'late') : call === 2 ? 503 : 204,
  );
  await rowDelivery(options(control))(ROWS);
  expect(taken).toHaveLength(4);
});

test.each([401, 403, 404, 409, 410])(
  'status %i means that this attempt may say nothing any more',
  async (status) => {
    const { control } = gateway(() => status);
    const parts = options(control);
    await expect(rowDelivery(parts)(ROWS)).rejects.toThrow(DeliveryLost);
    expect(parts.lost).toHaveLength(1);
  },
);

test('the trying ends when the process is about to go', async () => {
  const ending = new AbortController();
  const { control } = gateway(() => {
    ending.abort();
    return 500;
  });
  const call = { name: 'telemetry', method: 'POST', path: 'telemetry', body: { frames: [] } } as const;
  await expect(deliver(call, { ...options(control), signal: ending.signal })).rejects.toThrow(DeliveryLost);
});
