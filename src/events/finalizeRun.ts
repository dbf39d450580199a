// The last call of a run. It guards against a result that is lost because its first answer was an error (R19), and
// against a run that stays open for ever because its result can't be taken: that one is failed instead, with the
// reason. What follows from an answer that isn't the last word is the pass's.

import { finalizeRequestSchema } from '../contract/runControl.js';
import type { RunStates } from '../queue/fleet.js';
import { parseStored } from '../queue/stored.js';
import type { RunAccess } from './runAccess.js';
import { verdictOn, type Refused, type Verdict } from './verdict.js';

/** The platform has its last word on the run, and the record says so. */
export interface FinishedRun {
  readonly verdict: 'finished';
  /** `refused`: not even that the run is failed was taken. */
  readonly answer: 'acknowledged' | 'other_owner' | 'refused';
  /** What the result got that was to be sent; the run is failed in its place. */
  readonly refusal: Refused<'entry_refused'> | undefined;
}

export type FinalizeEnd =
  | FinishedRun
  /** The platform has answered, but the run has a newer claim by now: that one has to speak. */
  | { readonly verdict: 'superseded' }
  | Exclude<Verdict, { verdict: 'accepted' | 'conflict' | 'entry_refused' }>;

const laneFinalize = finalizeRequestSchema.omit({ workerId: true });
type Result = ReturnType<typeof laneFinalize.parse>;

/**
 * Sends a run's finalize and records its end.
 *
 * @param body JSON text of the lane's finalize entry: status and output.
 * @param access of the newest claim.
 * @throws RecordError
 */
export async function finalizeRun(
  runStates: Pick<RunStates, 'finish'>,
  access: RunAccess,
  body: string,
  signal: AbortSignal,
): Promise<FinalizeEnd> {
  const { runId, leaseId, workerId } = access.credential;
  const send = async (result: Result): Promise<Verdict> =>
    verdictOn(await access.client.finalize({ ...result, workerId }, { signal }));

  let result: Result = parseStored(laneFinalize, body, `The finalize of run ${runId}`);
  let verdict = await send(result);
  let refusal: Refused<'entry_refused'> | undefined;
  if (verdict.verdict === 'entry_refused') {
    refusal = verdict;
    result = failedInstead(verdict.status);
    verdict = await send(result);
  }

  const finish = async (answer: FinishedRun['answer']): Promise<FinalizeEnd> => {
    const finished = await runStates.finish(runId, leaseId, { status: result.status, answer });
    return finished === 'finished' ? { verdict: 'finished', answer, refusal } : { verdict: 'superseded' };
  };
  switch (verdict.verdict) {
    case 'accepted':
      return finish('acknowledged');
    case 'conflict':
      return finish('other_owner');
    case 'entry_refused':
      return finish('refused');
    case 'access_refused':
    case 'later':
    case 'cut':
      return verdict;
  }
}

function failedInstead(status: number): Result {
  const error = {
    code: 'VALIDATION_FAILED',
    message: `The control plane refused the run's result (${status}).`,
    hint: 'Return a smaller or simpler value, and keep large data in a file or an artifact.',
  };
  return { status: 'failed', output: { error } };
}
