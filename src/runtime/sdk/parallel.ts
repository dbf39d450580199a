// Many thunks at once, each failure on its own. It guards against two things: a failure that stops its neighbours half
// way, and a cancelled run that goes on because its cancellation looked like one more failure.

import { isRunFatal } from '../../contract/runFatal.js';

/**
 * Calls all thunks in order without a limit and waits for all of them. A failure becomes `null` at its position and is
 * told by `console.warn`; the first run-fatal one is thrown unchanged, after everything has settled.
 */
export async function parallel<T>(
  thunks: readonly (() => T | PromiseLike<T>)[],
): Promise<(Awaited<T> | null)[]> {
  // Through an async function a thunk that throws at once fails like any other.
  const settled = await Promise.allSettled(thunks.map(async (thunk) => thunk()));
  const fatal = settled.find((result) => result.status === 'rejected' && isRunFatal(result.reason));
  if (fatal?.status === 'rejected') throw fatal.reason;
  return settled.map((result, index) => {
    if (result.status === 'fulfilled') return result.value;
    const reason: unknown = result.reason;
    console.warn(
      `parallel: task ${index} failed: ${reason instanceof Error ? reason.message : String(reason)}`,
    );
    return null;
  });
}
