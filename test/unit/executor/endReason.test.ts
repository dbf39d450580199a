import { describe, expect, it } from 'vitest';
import {
  countsAsAttempt,
  finalizeCode,
  isStartFailure,
  readSandboxEnd,
  tryAgainInMs,
} from '../../../src/executor/endReason.js';

describe('the end of a sandbox', () => {
  it('is a crash of the runtime after a signal or an uncaught exception, and says which (R9)', () => {
    expect(readSandboxEnd({ exitCode: null, signal: 'SIGSEGV' }, [])).toEqual({
      reason: 'runtime_crash',
      evidence: 'signal SIGSEGV',
    });
    expect(readSandboxEnd({ exitCode: 1, signal: null }, ['a', 'TypeError: x'])).toEqual({
      reason: 'runtime_crash',
      evidence: 'exit code 1; last standard error: a | TypeError: x',
    });
  });

  it('is its own exit otherwise', () => {
    expect(readSandboxEnd({ exitCode: 0, signal: null }, []).reason).toBe('sandbox_exit');
    expect(readSandboxEnd({ exitCode: 143, signal: null }, []).reason).toBe('sandbox_exit');
  });

  it('is the platform’s when the runtime says that it got no answer', () => {
    expect(readSandboxEnd({ exitCode: 75, signal: null }, []).reason).toBe('control_plane_unreachable');
  });

  it('is a start that failed when it never came to run', () => {
    const end = readSandboxEnd({ exitCode: null, signal: null, error: 'node: ENOENT' }, []);
    expect(end).toEqual({ reason: 'sandbox_start_failed', evidence: 'node: ENOENT' });
  });

  it('is what the engine knows of it, before what its exit code looks like (P42)', () => {
    const oom = readSandboxEnd({ exitCode: null, signal: 'SIGKILL', cause: 'out_of_memory' }, []);
    expect(oom).toEqual({ reason: 'out_of_memory', evidence: 'signal SIGKILL' });
    const lost = readSandboxEnd({ exitCode: null, signal: null, cause: 'engine_lost' }, []);
    expect(lost.reason).toBe('engine_lost');
    const missing = { exitCode: null, signal: null, error: 'no such image', cause: 'image_missing' } as const;
    expect(readSandboxEnd(missing, [])).toEqual({ reason: 'image_missing', evidence: 'no such image' });
  });

  it('tells a start that failed from a run that ended', () => {
    expect(isStartFailure('sandbox_start_failed')).toBe(true);
    expect(isStartFailure('image_missing')).toBe(true);
    expect(isStartFailure('out_of_memory')).toBe(false);
  });

  it('carries a bounded tail of standard error', () => {
    const end = readSandboxEnd(
      { exitCode: 1, signal: null },
      Array.from({ length: 20 }, () => 'x'.repeat(1_000)),
    );
    expect(end.evidence.length).toBeLessThan(2_100);
  });

  it('counts only ends that the run had a part in', () => {
    expect(countsAsAttempt('sandbox_exit')).toBe(true);
    expect(countsAsAttempt('handed_back')).toBe(false);
    expect(countsAsAttempt('engine_lost')).toBe(false);
    expect(countsAsAttempt('control_plane_unreachable')).toBe(false);
    expect(countsAsAttempt('lease_lost')).toBe(false);
  });

  it('lets what is passing pass: the next try waits longer each time, up to half a minute', () => {
    expect([0, 1, 2, 3, 50].map(tryAgainInMs)).toEqual([1_000, 2_000, 4_000, 8_000, 30_000]);
  });

  it('is finalized under its name in upper case', () => {
    expect(finalizeCode('sandbox_exit')).toBe('SANDBOX_EXIT');
  });
});
