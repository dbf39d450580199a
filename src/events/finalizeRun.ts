// The last call of a run. It guards against a result that is lost because its first answer was an error (R19), and
// against a run that stays open for ever because its result can't be taken: then it is failed, with the reason.

import { isRecord } from '../contract/json.js';
import type { RunClient } from '../platform/runClient.js';

type Status = 'completed' | 'failed';

export type FinalizeSent =
  /** The platform has its last word on the run. */
  | {
      readonly outcome: 'ended';
      readonly status: Status;
      readonly answer: 'acknowledged' | 'other_owner' | 'refused';
    }
  /** The token is not good (any more). */
  | { readonly outcome: 'token'; readonly status: number }
  | { readonly outcome: 'failed'; readonly error: Error };

/**
 * @param body JSON text of the lane's finalize entry: status and output
 * @param workerId of the claim in whose name it is sent
 */
export async function sendFinalize(
  client: RunClient,
  body: string,
  workerId: string,
  signal: AbortSignal,
): Promise<FinalizeSent> {
  const { status, output } = readBody(body);
  const first = await client.finalize({ status, output, workerId }, { signal });
  if (first.outcome !== 'refused' || (first.status !== 400 && first.status !== 413))
    return read(first, status);
  const error = {
    code: 'VALIDATION_FAILED',
    message: `The control plane refused the run's result (${first.status}).`,
    hint: 'Return less, or something simpler; write large data as artifacts.',
  };
  const second = await client.finalize({ status: 'failed', output: { error }, workerId }, { signal });
  return read(second, 'failed');
}

function read(answer: Awaited<ReturnType<RunClient['finalize']>>, status: Status): FinalizeSent {
  switch (answer.outcome) {
    case 'accepted':
      return { outcome: 'ended', status, answer: 'acknowledged' };
    case 'failed':
      return { outcome: 'failed', error: answer.error };
    case 'refused':
      if (answer.status === 409) return { outcome: 'ended', status, answer: 'other_owner' };
      if (answer.status === 400 || answer.status === 413)
        return { outcome: 'ended', status, answer: 'refused' };
      if (answer.status === 401 || answer.status === 403 || answer.status === 404)
        return { outcome: 'token', status: answer.status };
      return { outcome: 'failed', error: answer.error };
  }
}

function readBody(body: string): { readonly status: Status; readonly output: unknown } {
  const value: unknown = JSON.parse(body);
  if (!isRecord(value)) throw new TypeError('The finalize in the lane is no object.');
  return {
    status: value['status'] === 'completed' ? 'completed' : 'failed',
    output: value['output'] ?? null,
  };
}
