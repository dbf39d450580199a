// Waits that can be given up. Whoever waits for Redis, a sandbox or the platform must be able to stop (P25), and signals
// that live as long as the process must not gather what every short wait hung on them: plain listeners and timers, each
// taken away at the end (P28).

/** What a timer can count; a longer one would fire at once. */
export const LONGEST_TIMER_MS = 2_147_483_647;

export interface Bounds {
  /** Milliseconds; not given: however long it takes. */
  readonly ms?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export type Waited<T> =
  /** The work may still be done when it was given up; its failure is nobody's any more. */
  { readonly outcome: 'settled'; readonly value: T } | { readonly outcome: 'aborted' | 'timed_out' };

/** Waits for work until it settles, the signal falls or the time is over. Rejects as the work does. */
export async function waitFor<T>(work: Promise<T>, { ms, signal }: Bounds): Promise<Waited<T>> {
  let release: () => void = () => undefined;
  const givenUp = new Promise<Waited<T>>((resolve) => {
    const onAbort = (): void => resolve({ outcome: 'aborted' });
    const timer =
      ms === undefined ? undefined : setTimeout(() => resolve({ outcome: 'timed_out' }), timerMs(ms));
    release = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work.then((value) => ({ outcome: 'settled' as const, value })), givenUp]);
  } finally {
    release();
    work.catch(() => undefined);
  }
}

/**
 * Sleeps; `false` when the signal ended it first.
 *
 * @param options `ref`: keeps the process alive meanwhile. Default: it does not.
 */
export function pause(
  ms: number,
  signal?: AbortSignal,
  options: { readonly ref?: boolean } = {},
): Promise<boolean> {
  if (signal?.aborted === true) return Promise.resolve(false);
  return new Promise((resolve) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      resolve(false);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve(true);
    }, timerMs(ms));
    if (options.ref !== true) timer.unref();
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** For a signal that belongs to the waiter; a long-lived one would gather listeners. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** One signal for several; `unlink` takes its listeners off theirs. */
export function linkSignals(...sources: readonly AbortSignal[]): {
  readonly signal: AbortSignal;
  readonly unlink: () => void;
} {
  const linked = new AbortController();
  const abort = (): void => linked.abort();
  for (const source of sources) {
    if (source.aborted) abort();
    else source.addEventListener('abort', abort, { once: true });
  }
  const unlink = (): void => {
    for (const source of sources) source.removeEventListener('abort', abort);
  };
  return { signal: linked.signal, unlink };
}

function timerMs(ms: number): number {
  return Math.min(LONGEST_TIMER_MS, Math.max(0, ms));
}
