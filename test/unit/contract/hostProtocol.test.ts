import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { encodeHostFrame, readHostFrame, type HostFrame } from '../../../src/contract/hostFrames.js';
import {
  clientMethods,
  clientNotifications,
  hostFrameSchema,
  hostMethods,
  hostNotifications,
} from '../../../src/contract/hostProtocol.js';
import { isRunFatal } from '../../../src/contract/runFatal.js';
import { asJson, named, vectorCases, type VectorCase } from './vectors.js';

interface HostCase extends VectorCase {
  readonly direction: 'client_to_host' | 'host_to_client';
  readonly method: string;
  readonly side: 'params' | 'result';
  readonly payload: unknown;
  readonly valid: boolean;
  readonly normalized?: unknown;
  readonly line: string;
  readonly as?: string;
  readonly reason: unknown;
  readonly fatal: boolean;
}

type Sides = Readonly<Record<string, Readonly<Partial<Record<'params' | 'result', z.ZodType>>>>>;
const METHODS: Readonly<Record<HostCase['direction'], Sides>> = {
  client_to_host: { ...clientMethods, ...clientNotifications },
  host_to_client: { ...hostMethods, ...hostNotifications },
};

const cases = vectorCases<HostCase>('host-protocol', 291);
const ofType = (type: string): ReturnType<typeof named<HostCase>> =>
  named(cases.filter((one) => one['type'] === type));

describe('params and results agree with the vectors', () => {
  it.each(ofType('payload'))('%s', (_name, { direction, method, side, payload, valid, normalized }) => {
    const schema = METHODS[direction][method]?.[side];
    if (schema === undefined) throw new Error(`no schema of ${method} ${side}`);
    const parsed = schema.safeParse(payload);
    expect(parsed.success).toBe(valid);
    if (valid) expect(asJson(parsed.data)).toEqual(normalized ?? payload);
  });

  it('cover every method', () => {
    const covered = new Set(cases.map(({ method }) => method));
    for (const method of [...Object.keys(METHODS.client_to_host), ...Object.keys(METHODS.host_to_client)])
      expect(covered).toContain(method);
  });
});

describe('a frame is told apart', () => {
  it.each(ofType('frame'))('%s', (_name, { line, valid, as, reason }) => {
    const read = readHostFrame(line);
    if (reason === 'not_json') {
      expect(read).toEqual({ as: 'invalid', reason: 'not_json' });
      return;
    }
    expect(hostFrameSchema.safeParse(JSON.parse(line)).success).toBe(valid);
    if (valid) expect(read.as).toBe(as);
  });

  it.each([
    ['{"jsonrpc":"2.0","id":1,"method":"sleep","trace":"x"}', 'request'],
    ['{"jsonrpc":"2.0","id":1,"error":{"code":"X","message":"m","stack":"s"}}', 'error'],
    ['{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":"X","message":"m"}}', 'error'],
    ['{"jsonrpc":"2.0","id":1,"result":{},"method":"m"}', 'request'],
    ['{"jsonrpc":"2.0","method":"cancel","at":1}', 'notification'],
  ])('with members that we do not know ignored: %s', (line, as) => {
    expect(readHostFrame(line).as).toBe(as);
  });

  it.each([
    'null',
    '7',
    '[]',
    '{}',
    '{"jsonrpc":"2.0","id":null,"method":"m"}',
    '{"jsonrpc":"2.0","id":{},"result":1}',
  ])('or refused: %s', (line) => {
    expect(readHostFrame(line)).toEqual({ as: 'invalid', reason: 'not_a_frame' });
  });
});

describe('a frame that is sent', () => {
  const frames: readonly HostFrame[] = [
    { as: 'request', id: 1, method: 'sleep', params: { arg: 5 } },
    { as: 'notification', method: 'phase', params: { name: 'Collect' } },
    { as: 'success', id: 'a', result: { output: [1, null] } },
    { as: 'error', id: null, error: { code: 'PROTOCOL_ERROR', message: 'm', data: { hint: 'h' } } },
  ];

  it.each(frames)('suits the strictest peer and reads back: $as', (frame) => {
    const line = encodeHostFrame(frame);
    expect(line.endsWith('\n')).toBe(true);
    expect(hostFrameSchema.safeParse(JSON.parse(line)).success).toBe(true);
    expect(readHostFrame(line)).toEqual(frame);
  });

  it('answers null when there is no result, rather than not at all', () => {
    expect(readHostFrame(encodeHostFrame({ as: 'success', id: 1, result: undefined }))).toEqual({
      as: 'success',
      id: 1,
      result: null,
    });
  });
});

describe('an error ends the run or one branch of it', () => {
  it.each(ofType('run_fatal'))('%s', (_name, { reason, fatal }) => {
    expect(isRunFatal(reason)).toBe(fatal);
  });

  it('also when it is an Error of any class', () => {
    expect(isRunFatal(Object.assign(new Error('stop'), { code: 'CANCELLED' }))).toBe(true);
    expect(isRunFatal(new Error('CANCELLED'))).toBe(false);
  });
});
