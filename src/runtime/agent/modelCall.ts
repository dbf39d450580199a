// One model call from request to result (protocol/inference.md 3-7, 9). The gateway repeats it where that is safe, so
// nothing is repeated here. It guards against half an answer taken for a whole one, and against a model that goes on
// generating for a run that was stopped.

import {
  type InferenceFrame,
  InferenceStreamError,
  readFrames,
  type ResultFrame,
} from '../../contract/inference.js';
import { AGENT_HEADER } from '../../contract/fleetCalls.js';
import { CallProgress, refusalMessage } from '../../contract/inferenceCall.js';
import type { Control, ControlCall } from '../control.js';
import { isErrorCode, RunFailure } from '../runFailure.js';

/** Of an answer that refuses the call. */
const REFUSAL_BYTES = 256 * 1024;

export interface ModelCallOptions {
  /** Undefined: it has none. */
  readonly agentName: string | undefined;
  readonly control: Pick<Control, 'stream'>;
  /** Aborts the request itself, so that the server can stop the upstream. */
  readonly signal: AbortSignal;
  /** Every frame in order; may wait. */
  readonly onFrame: (frame: InferenceFrame) => Promise<void> | void;
}

/**
 * @throws RunFailure `PROVIDER_ERROR`, or the code of an error frame; the signal's reason when it was aborted
 */
export async function callModel(body: unknown, options: ModelCallOptions): Promise<ResultFrame> {
  const { agentName = '', control, signal, onFrame } = options;
  const call: ControlCall = {
    name: 'inference',
    method: 'POST',
    path: 'inference',
    body,
    accept: 'application/x-ndjson',
    headers: { [AGENT_HEADER]: encodeURIComponent(agentName) },
    signal,
  };
  try {
    const answer = await control.stream(call);
    if (answer.status !== 200)
      throw new RunFailure('PROVIDER_ERROR', refusalMessage(await beginningOf(answer.body)));
    const progress = new CallProgress();
    for await (const frame of readFrames(answer.body as AsyncIterable<Uint8Array>)) {
      signal.throwIfAborted();
      progress.apply(frame);
      if (frame.kind === 'error') throw frameError(frame.error);
      await onFrame(frame);
    }
    if (progress.result === undefined)
      throw new RunFailure('PROVIDER_ERROR', 'The model call ended without a result.');
    return progress.result;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RunFailure) throw error;
    if (error instanceof InferenceStreamError)
      throw new RunFailure('PROVIDER_ERROR', error.message, { cause: error });
    throw new RunFailure('PROVIDER_ERROR', 'The connection broke during the model call.', { cause: error });
  }
}

function frameError({ code, message }: { readonly code: string; readonly message: string }): RunFailure {
  return new RunFailure(isErrorCode(code) ? code : 'PROVIDER_ERROR', message);
}

async function beginningOf(body: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    if (bytes > REFUSAL_BYTES) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}
