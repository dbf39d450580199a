import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { LONGEST_TIMER_MS, linkSignals, pause, waitFor } from '../../../src/waiting/waiting.js';

const never = new Promise<never>(() => undefined);

describe('a pause', () => {
  it('ends when its signal falls', async () => {
    const stop = new AbortController();
    const paused = pause(60_000, stop.signal);
    stop.abort();
    expect(await paused).toBe(false);
  });

  it('does not begin under a signal that has fallen', async () => {
    expect(await pause(60_000, AbortSignal.abort())).toBe(false);
  });

  it('ends by itself, and leaves nothing on its signal (P28)', async () => {
    const { signal } = new AbortController();
    expect(await pause(1, signal, { ref: true })).toBe(true);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('that is longer than a timer can be does not end at once', async () => {
    const stop = new AbortController();
    const paused = pause(LONGEST_TIMER_MS + 1, stop.signal);
    await pause(20, undefined, { ref: true });
    stop.abort();
    expect(await paused).toBe(false);
  });
});

describe('waiting for work', () => {
  it('ends as the work does', async () => {
    expect(await waitFor(Promise.resolve(7), {})).toEqual({ outcome: 'settled', value: 7 });
    await expect(waitFor(Promise.reject(new Error('no')), { ms: 60_000 })).rejects.toThrow('no');
  });

  it('ends when the time is over or the signal falls, whichever is first, also at once (P25)', async () => {
    const stop = new AbortController();
    expect(await waitFor(never, { ms: 1, signal: stop.signal })).toEqual({ outcome: 'timed_out' });
    const waiting = waitFor(never, { ms: 60_000, signal: stop.signal });
    stop.abort();
    expect(await waiting).toEqual({ outcome: 'aborted' });
    expect(await waitFor(never, { signal: stop.signal })).toEqual({ outcome: 'aborted' });
    expect(await waitFor(never, { ms: -1 })).toEqual({ outcome: 'timed_out' });
  });

  it('that was given up takes no notice of how it fails, and leaves nothing on its signal (P28)', async () => {
    const { signal } = new AbortController();
    let fail: (error: Error) => void = () => undefined;
    const work = new Promise((_resolve, reject) => (fail = reject));
    expect(await waitFor(work, { ms: 1, signal })).toEqual({ outcome: 'timed_out' });
    fail(new Error('too late'));
    await pause(1, undefined, { ref: true });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('linked signals', () => {
  it('fall with any of their sources, and are taken off them again (P28)', () => {
    const [one, two] = [new AbortController(), new AbortController()];
    const first = linkSignals(one.signal, two.signal);
    first.unlink();
    expect(getEventListeners(one.signal, 'abort')).toEqual([]);
    const second = linkSignals(one.signal, two.signal);
    two.abort();
    expect([first.signal.aborted, second.signal.aborted]).toEqual([false, true]);
    expect(linkSignals(two.signal).signal.aborted).toBe(true);
  });
});
