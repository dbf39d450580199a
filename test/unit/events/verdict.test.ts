import { describe, expect, it } from 'vitest';
import { verdictOn } from '../../../src/events/verdict.js';
import { PlatformError } from '../../../src/platform/platformError.js';

const error = new PlatformError('PLATFORM_STATUS', 'telemetry: refused', { endpoint: 'telemetry' });
const verdictOfStatus = (status: number) =>
  verdictOn({ outcome: 'refused', status, body: 'why', error }).verdict;

describe('the verdict on an answer', () => {
  it.each([
    [400, 'entry_refused'],
    [413, 'entry_refused'],
    [422, 'entry_refused'],
    [401, 'access_refused'],
    [403, 'access_refused'],
    [404, 'access_refused'],
    [409, 'conflict'],
    [402, 'later'],
    [405, 'later'],
    [410, 'later'],
  ])('%i is %s', (status, verdict) => {
    expect(verdictOfStatus(status)).toBe(verdict);
  });

  it('keeps what the platform said', () => {
    expect(verdictOn({ outcome: 'refused', status: 413, body: 'too large', error })).toEqual({
      verdict: 'entry_refused',
      status: 413,
      answer: 'too large',
    });
  });

  it('tells a call that we broke off from one that failed', () => {
    const aborted = new PlatformError('PLATFORM_ABORTED', 'aborted', { endpoint: 'telemetry' });
    expect(verdictOn({ outcome: 'failed', error: aborted })).toEqual({ verdict: 'cut' });
    expect(verdictOn({ outcome: 'failed', error })).toEqual({ verdict: 'later', error });
  });
});
