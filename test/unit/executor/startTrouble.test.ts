import { describe, expect, it } from 'vitest';
import { StartTrouble } from '../../../src/executor/startTrouble.js';

describe('a start that failed', () => {
  it('is held against its run while no other run fails, and against the machine from then on', () => {
    const trouble = new StartTrouble();
    expect([trouble.failed('a'), trouble.failed('a')]).toEqual([true, true]);
    expect([trouble.failed('b'), trouble.failed('a')]).toEqual([false, false]);
    trouble.worked();
    expect(trouble.failed('b')).toBe(true);
  });

  it('is paused from once: an executor that has nothing to start goes on looking for work', () => {
    const trouble = new StartTrouble();
    trouble.failed('a');
    expect([trouble.takePauseMs(), trouble.takePauseMs()]).toEqual([1_000, 0]);
  });

  it('makes the executor pause, longer each time, until a start works', () => {
    const trouble = new StartTrouble();
    expect(trouble.takePauseMs()).toBe(0);
    const pauses = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((run) => {
      trouble.failed(run);
      return trouble.takePauseMs();
    });
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    trouble.failed('h');
    trouble.worked();
    expect(trouble.takePauseMs()).toBe(0);
  });
});
