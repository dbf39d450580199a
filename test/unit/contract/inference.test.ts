import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import {
  InferenceStreamError,
  parseFrameLine,
  readFrames,
  type InferenceFrame,
} from '../../../src/contract/inference.js';
import {
  CallProgress,
  refusalMessage,
  retryVerdict,
  type CallFailure,
} from '../../../src/contract/inferenceCall.js';
import { MAX_LINE_BYTES } from '../../../src/contract/lines.js';
import { named, vectorCases, type VectorCase } from './vectors.js';

interface Body {
  readonly chunks_b64?: readonly string[];
  readonly then?: 'connection_drop';
}

interface StreamCase extends VectorCase, Body {
  readonly frames: readonly unknown[];
  readonly error?: true;
  readonly ours?: { readonly frames?: readonly unknown[]; readonly error?: true };
}

interface Attempt extends Body {
  readonly refused?: true;
  readonly status?: number;
  readonly body?: unknown;
}

interface AttemptsCase extends StreamCase {
  readonly attempts: readonly Attempt[];
  readonly max_attempts: number;
  readonly requests: number;
  readonly message?: string;
}

// eslint-disable-next-line @typescript-eslint/require-await -- a body is an async source, also when it holds nothing
async function* bodyOf({ chunks_b64 = [], then }: Body): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks_b64) yield Buffer.from(chunk, 'base64');
  if (then === 'connection_drop') throw new Error('connection dropped');
}

const cases = vectorCases<StreamCase>('inference-frames', 116);
const streams = cases.filter((one) => !('attempts' in one));
const calls = cases.filter((one): one is AttemptsCase => 'attempts' in one);

describe('a stream of frames is read', () => {
  it.each(named(streams))('%s', async (_name, { frames, error, ours, ...body }) => {
    const read: InferenceFrame[] = [];
    const reading = (async () => {
      for await (const frame of readFrames(bodyOf(body))) read.push(frame);
    })();
    if ((ours ?? { error }).error === true) await expect(reading).rejects.toThrow();
    else await reading;
    expect(read).toEqual(ours?.frames ?? frames);
  });
});

/** The client of the vectors: POSTs of one turn until a verdict says that there is no other try. */
async function callModel(attempts: readonly Attempt[], maxAttempts: number) {
  const frames: InferenceFrame[] = [];
  for (let attempt = 1; ; attempt += 1) {
    const served = attempts[Math.min(attempt, attempts.length) - 1] ?? {};
    const progress = new CallProgress();
    const failed = await attemptOnce(served, progress, frames);
    if (failed === null) return { requests: attempt, frames, error: undefined };
    const verdict = retryVerdict({ sawContent: progress.sawContent, cause: failed, attempt, maxAttempts });
    if (!verdict.retry) {
      const message = failed.kind === 'status' ? refusalMessage(JSON.stringify(served.body)) : failed.kind;
      return { requests: attempt, frames, error: message };
    }
  }
}

async function attemptOnce(
  served: Attempt,
  progress: CallProgress,
  frames: InferenceFrame[],
): Promise<CallFailure | null> {
  if (served.refused === true) return { kind: 'connect' };
  if (served.status !== 200) return { kind: 'status', status: served.status ?? 0 };
  try {
    for await (const frame of readFrames(bodyOf(served))) {
      progress.apply(frame);
      frames.push(frame);
    }
  } catch {
    return { kind: 'stream_broken' };
  }
  return progress.result === undefined ? { kind: 'no_result' } : null;
}

describe('a call is made again only while nothing was seen', () => {
  it.each(named(calls))('%s', async (_name, { attempts, max_attempts, requests, frames, error, message }) => {
    const outcome = await callModel(attempts, max_attempts);
    expect(outcome.requests).toBe(requests);
    expect(outcome.frames).toEqual(frames);
    expect(outcome.error !== undefined).toBe(error === true);
    if (message !== undefined) expect(outcome.error).toBe(message);
  });
});

describe('the verdict on a failed attempt', () => {
  const connect = { kind: 'connect' } as const;

  it('spaces five attempts and ends with the fifth', () => {
    const delays = [1, 2, 3, 4, 5].map((attempt) =>
      retryVerdict({ sawContent: false, cause: connect, attempt }),
    );
    expect(delays).toEqual([
      { retry: true, delayMs: 500 },
      { retry: true, delayMs: 2_000 },
      { retry: true, delayMs: 5_000 },
      { retry: true, delayMs: 10_000 },
      { retry: false },
    ]);
  });

  it('is no after content, whatever the cause', () => {
    for (const cause of [connect, { kind: 'stream_broken' }, { kind: 'status', status: 503 }] as const)
      expect(retryVerdict({ sawContent: true, cause, attempt: 1 })).toEqual({ retry: false });
  });

  it('is no for a stream that ended in order without a result, and for an empty answer', () => {
    expect(retryVerdict({ sawContent: false, cause: { kind: 'no_result' }, attempt: 1 }).retry).toBe(false);
    expect(
      retryVerdict({ sawContent: false, cause: { kind: 'status', status: 200 }, attempt: 1 }).retry,
    ).toBe(false);
  });
});

const RESULT = '{"t":"result","turn":{"text":"a","toolCalls":[]},"modelRef":"m"}';

describe('the progress of a call', () => {
  it('forgets a result when the server starts the call over', () => {
    const progress = new CallProgress();
    progress.apply(parseFrameLine(RESULT));
    expect(progress.result?.turn.text).toBe('a');
    progress.apply({ kind: 'reset' });
    expect(progress.result).toBeUndefined();
    expect(progress.sawContent).toBe(true);
  });

  it('keeps the last of two results, and an error frame', () => {
    const progress = new CallProgress();
    progress.apply({ kind: 'ping' });
    expect(progress.sawContent).toBe(false);
    for (const line of [
      RESULT,
      RESULT.replace('"a"', '"b"'),
      '{"t":"error","error":{"code":"X","message":"cut"}}',
    ])
      progress.apply(parseFrameLine(line));
    expect(progress.result?.turn.text).toBe('b');
    expect(progress.error?.error.code).toBe('X');
  });
});

describe('a message for a refused call', () => {
  it.each([
    ['{"error":{"message":"no credit"}}', 'no credit'],
    ['{"error":{"message":""}}', 'Inference failed.'],
    ['{"error":"no"}', 'Inference failed.'],
    ['<html>502</html>', 'Inference failed.'],
    ['', 'Inference failed.'],
  ])('of %j is %j', (body, message) => {
    expect(refusalMessage(body)).toBe(message);
  });
});

describe('what is fatal to a stream', () => {
  it('is a line longer than the bound, after the frames before it', async () => {
    const body = Readable.from([Buffer.from('{"t":"ping"}\n'), Buffer.alloc(MAX_LINE_BYTES + 1, 'x')]);
    const read: InferenceFrame[] = [];
    const reading = (async () => {
      for await (const frame of readFrames(body)) read.push(frame);
    })();
    await expect(reading).rejects.toThrow(InferenceStreamError);
    expect(read).toEqual([{ kind: 'ping' }]);
  });

  it('says nothing of the text that it could not read', () => {
    const read = (): unknown => parseFrameLine('password: hunter22');
    expect(read).toThrow(InferenceStreamError);
    expect(read).not.toThrow(/hunter/);
  });

  it('rounds a context window down, and drops one below a token', () => {
    const frame = (tokens: string): InferenceFrame =>
      parseFrameLine(RESULT.replace('"modelRef"', `"contextTokens":${tokens},"modelRef"`));
    expect(frame('32000.9')).toMatchObject({ contextTokens: 32_000 });
    expect(frame('0.5')).not.toHaveProperty('contextTokens');
    expect(frame('-4')).not.toHaveProperty('contextTokens');
  });
});
