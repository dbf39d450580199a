// Waiting for an answer of Redis, but not for ever. A client that is reconnecting holds commands back, which is right
// for work and wrong for a loop that must keep a lease or stop: it guards against one call that never returns (P25).

export type Waited<T> =
  | { readonly outcome: 'answered'; readonly value: T }
  | { readonly outcome: 'failed'; readonly error: unknown }
  /** Time or signal came first; what was asked may still be carried out. */
  | { readonly outcome: 'gave_up' };

/** Waits for `asked` at most `ms` milliseconds and until `signal` falls. Never rejects. */
export function within<T>(
  asked: Promise<T>,
  { ms, signal }: { readonly ms: number; readonly signal?: AbortSignal },
): Promise<Waited<T>> {
  return new Promise((resolve) => {
    const settle = (waited: Waited<T>): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
      resolve(waited);
    };
    const giveUp = (): void => settle({ outcome: 'gave_up' });
    const timer = setTimeout(giveUp, ms);
    signal?.addEventListener('abort', giveUp, { once: true });
    asked.then(
      (value) => settle({ outcome: 'answered', value }),
      (error: unknown) => settle({ outcome: 'failed', error }),
    );
    if (signal?.aborted === true) giveUp();
  });
}
