// The program's archive, streamed through the gateway, so that a sandbox without network has it. It guards against a
// half archive that looks whole. Nothing is kept: a cache by digest would stand in front of this.

import { RETRIED_STATUSES } from '../../contract/callPolicy.js';
import { type Random, retryDelay } from '../../platform/backoff.js';
import { PLATFORM_TIMEOUTS, type PlatformHttp, type StreamAnswer } from '../../platform/http.js';
import { PlatformError } from '../../platform/platformError.js';
import { Refusal } from './answers.js';
import type { Call, Pause } from './calls.js';
import { BodyBroke, chunksOf, type PassedAnswer, passedHeaders, unreachable, wholeBody } from './upstream.js';

export interface ProgramDependencies {
  readonly http: Pick<PlatformHttp, 'stream'>;
  readonly pause: Pause;
  readonly random: Random;
}

/** What went wrong while nothing had been given yet. */
type Failure = PassedAnswer | PlatformError | BodyBroke;

/** Streams the archive. Tried again until its first byte has gone to the sandbox; a drop after that cuts the answer. */
export async function relayProgram(
  call: Call,
  downloadUrl: string,
  deps: ProgramDependencies,
): Promise<void> {
  for (let attempts = 1; ; attempts += 1) {
    const failure = await attempt(call, downloadUrl, deps);
    if (failure === undefined) return;
    const afterMs = isTransient(failure) ? retryDelay(attempts, undefined, deps.random) : null;
    if (afterMs === null) {
      if (failure instanceof PlatformError) throw unreachable(failure);
      if (failure instanceof BodyBroke) {
        throw new Refusal(502, 'DOWNLOAD_BROKE', "The program's download broke off.");
      }
      call.answer(failure.status, failure.body, passedHeaders(failure.headers));
      return;
    }
    await deps.pause(afterMs, call.signal);
    call.throwIfEnded();
  }
}

function isTransient(failure: Failure): boolean {
  if (failure instanceof BodyBroke) return true;
  if (failure instanceof PlatformError) return failure.code !== 'PLATFORM_INVALID';
  return RETRIED_STATUSES.has(failure.status);
}

async function attempt(call: Call, url: string, deps: ProgramDependencies): Promise<Failure | undefined> {
  try {
    const answer = await deps.http.stream({
      name: 'program download',
      method: 'GET',
      url,
      headers: { 'accept-encoding': 'identity' },
      timeoutMs: PLATFORM_TIMEOUTS.bulkMs,
      signal: call.signal,
    });
    if (answer.status === 200) return await give(call, answer);
    const body = await wholeBody(answer.body);
    call.throwIfEnded();
    return { status: answer.status, headers: answer.headers, body };
  } catch (error) {
    call.throwIfEnded();
    if (error instanceof PlatformError) return error;
    throw error;
  }
}

async function give(call: Call, answer: StreamAnswer): Promise<BodyBroke | undefined> {
  const { res } = call;
  const length = answer.headers['content-length'];
  const begin = (): void => {
    if (res.headersSent) return;
    res.writeHead(200, {
      'content-type': 'application/octet-stream',
      ...(typeof length === 'string' ? { 'content-length': length } : {}),
    });
  };
  try {
    for await (const chunk of chunksOf(answer.body)) {
      call.throwIfEnded();
      begin();
      await call.write(chunk);
    }
  } catch (error) {
    call.throwIfEnded();
    if (!(error instanceof BodyBroke)) throw error;
    if (!res.headersSent) return error;
    // The sandbox must see that the body is not whole; its digest check would only say that it is wrong.
    res.destroy();
    return undefined;
  }
  begin();
  res.end();
  return undefined;
}
