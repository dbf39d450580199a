// Waits that end with a signal and leave nothing behind: no listener, no timer (P28).

import { setTimeout as delay } from 'node:timers/promises';

/** What a timer can count; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** Sleeps without keeping the process alive; `false` when the signal ended it first. */
export async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await delay(ms, undefined, { signal, ref: false });
    return true;
  } catch {
    return false;
  }
}

/** The value of `work`, or `undefined` when the signal came first; a later failure of `work` is nobody's business. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<undefined>((resolve) => {
    onAbort = () => resolve(undefined);
  });
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  work.catch(() => undefined);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** For a signal that belongs to the waiter; a long-lived one would gather listeners. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** `false` when the time was up before the work was done. */
export async function within(work: Promise<unknown>, ms: number): Promise<boolean> {
  const timeUp = new AbortController();
  try {
    return await Promise.race([
      work.then(() => true),
      delay(Math.min(Math.max(0, ms), LONGEST_TIMER_MS), false, { signal: timeUp.signal }).catch(() => false),
    ]);
  } finally {
    timeUp.abort();
  }
}
