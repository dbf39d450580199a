// One model call: whole lines streamed through, and made again while that is safe (protocol/inference.md 5). It guards
// against half a frame in the sandbox, text that a viewer would see twice, and a model that goes on generating for
// a sandbox that is gone. A stream that breaks after content ends the call; taking it up again would be one more
// step of `stepAfter`.

import type { Readable } from 'node:stream';
import { InferenceStreamError, parseFrameLine } from '../../contract/inference.js';
import { CallProgress, refusalMessage, retryVerdict } from '../../contract/inferenceCall.js';
import { LineReader, LineTooLongError } from '../../contract/lines.js';
import { PlatformError } from '../../platform/platformError.js';
import { Refusal } from './answers.js';
import type { Call, Pause } from './calls.js';
import { BodyBroke, chunksOf, type PassedAnswer, passedHeaders, unreachable, wholeBody } from './upstream.js';

/** Share of a retry's delay by which it may stray, so that the calls of many runs don't come back in step. */
const JITTER = 0.25;
const BROKEN = 'The model stream broke before its result.';

export interface OpenedStream {
  readonly status: number;
  readonly headers: PassedAnswer['headers'];
  readonly body: Readable;
}

export interface InferenceDependencies {
  /** Makes the call upstream once. @throws PlatformError when no headers came */
  readonly open: (signal: AbortSignal) => Promise<OpenedStream>;
  readonly pause: Pause;
  /** In [0, 1). */
  readonly random: () => number;
}

/** How one attempt ended. */
type AttemptEnd =
  | { readonly kind: 'passed' }
  | { readonly kind: 'connect'; readonly error: PlatformError }
  | { readonly kind: 'status'; readonly answer: PassedAnswer }
  | { readonly kind: 'stream_broken'; readonly sawContent: boolean };

type Failure = Exclude<AttemptEnd, { readonly kind: 'passed' }>;

type Step = { readonly step: 'again'; readonly afterMs: number } | { readonly step: 'fail' };

export async function relayInference(call: Call, deps: InferenceDependencies): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const end = await tryOnce(call, deps);
    if (end.kind === 'passed') return;
    const next = stepAfter(end, attempt);
    if (next.step === 'fail') {
      fail(call, end);
      return;
    }
    await deps.pause(next.afterMs * (1 - JITTER + 2 * JITTER * deps.random()), call.signal);
    call.throwIfEnded();
  }
}

/** The policy: a call is repeated only while nothing of it has been shown. */
function stepAfter(failure: Failure, attempt: number): Step {
  const verdict = retryVerdict({
    sawContent: failure.kind === 'stream_broken' && failure.sawContent,
    cause:
      failure.kind === 'status' ? { kind: 'status', status: failure.answer.status } : { kind: failure.kind },
    attempt,
  });
  return verdict.retry ? { step: 'again', afterMs: verdict.delayMs } : { step: 'fail' };
}

async function tryOnce(call: Call, deps: InferenceDependencies): Promise<AttemptEnd> {
  let stream: OpenedStream;
  try {
    stream = await deps.open(call.signal);
  } catch (error) {
    call.throwIfEnded();
    if (error instanceof PlatformError) return { kind: 'connect', error };
    throw error;
  }
  if (stream.status !== 200) {
    const body = await wholeBody(stream.body);
    call.throwIfEnded();
    return { kind: 'status', answer: { status: stream.status, headers: stream.headers, body } };
  }
  return pass(call, stream.body);
}

async function pass(call: Call, body: Readable): Promise<AttemptEnd> {
  const progress = new CallProgress();
  const lines = new LineReader();
  const give = async (line: string): Promise<void> => {
    progress.apply(parseFrameLine(line));
    await call.write(`${line}\n`);
  };
  try {
    call.throwIfEnded();
    // A second attempt goes on in the answer that the first one began: only pings have been in it.
    if (!call.res.headersSent) {
      call.res.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
      call.res.flushHeaders();
    }
    for await (const chunk of chunksOf(body)) {
      for (const line of lines.push(chunk)) await give(line);
    }
    for (const line of lines.end()) await give(line);
  } catch (error) {
    call.throwIfEnded();
    if (!isBreak(error)) throw error;
    // Once the call has its result or its error, how the connection ended is of no interest.
    if (progress.result === undefined && progress.error === undefined) {
      return { kind: 'stream_broken', sawContent: progress.sawContent };
    }
  } finally {
    body.destroy();
  }
  call.throwIfEnded();
  call.res.end();
  return { kind: 'passed' };
}

/** The connection broke, or what came can't be read (protocol/inference.md 4). */
function isBreak(error: unknown): boolean {
  return (
    error instanceof BodyBroke || error instanceof InferenceStreamError || error instanceof LineTooLongError
  );
}

/** Before the stream has begun as an HTTP answer, afterwards as its last frame. */
function fail(call: Call, failure: Failure): void {
  if (!call.res.headersSent) {
    if (failure.kind === 'connect') throw unreachable(failure.error);
    if (failure.kind === 'stream_broken') throw new Refusal(502, 'PROVIDER_ERROR', BROKEN);
    call.answer(failure.answer.status, failure.answer.body, passedHeaders(failure.answer.headers));
    return;
  }
  const message = failure.kind === 'status' ? refusalMessage(failure.answer.body.toString('utf8')) : BROKEN;
  call.throwIfEnded();
  call.res.end(`${JSON.stringify({ t: 'error', error: { code: 'PROVIDER_ERROR', message } })}\n`);
}
