// Waiting that can be given up. Plain listeners and timers, each taken away at the end: signals that live as long as
// the process must not gather what every short wait hung on them (P28).

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

export type Waited<T> =
  { readonly outcome: 'settled'; readonly value: T } | { readonly outcome: 'aborted' | 'timed_out' };

/** Waits for work until it settles, `signal` is aborted or the time is over; what comes later is dropped. */
export async function waitFor<T>(
  work: Promise<T>,
  signal: AbortSignal,
  timeoutMs?: number,
): Promise<Waited<T>> {
  let release: (() => void) | undefined;
  const givenUp = new Promise<Waited<T>>((resolve) => {
    const onAbort = (): void => resolve({ outcome: 'aborted' });
    const timer =
      timeoutMs === undefined ? undefined : setTimeout(() => resolve({ outcome: 'timed_out' }), timeoutMs);
    release = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work.then((value) => ({ outcome: 'settled' as const, value })), givenUp]);
  } finally {
    release?.();
    work.catch(() => undefined);
  }
}
