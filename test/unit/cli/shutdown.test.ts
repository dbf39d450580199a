import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { watchSignals, whenAborted, type Shutdown } from '../../../src/cli/shutdown.js';

describe('the signals of a command', () => {
  let signals: EventEmitter;
  let exits: number[];
  let shutdown: Shutdown;
  beforeEach(() => {
    vi.useFakeTimers();
    signals = new EventEmitter();
    exits = [];
    shutdown = watchSignals({ signals, exit: (code) => exits.push(code) });
  });
  afterEach(() => {
    shutdown.dispose();
    vi.useRealTimers();
  });

  it('ask for a drain first, which may take its time', async () => {
    shutdown.serving();
    signals.emit('SIGTERM');
    expect(await shutdown.asked).toBe(0);
    expect(shutdown.hurried.aborted).toBe(false);
    vi.advanceTimersByTime(3_600_000);
    expect(exits).toEqual([]);
  });

  it('end the process 12 s after the second one, whatever hangs', () => {
    shutdown.serving();
    signals.emit('SIGTERM');
    signals.emit('SIGINT');
    expect(shutdown.hurried.aborted).toBe(true);
    expect(exits).toEqual([]);
    vi.advanceTimersByTime(12_000);
    expect(exits).toEqual([130]);
  });

  it('end it at once on the third one', () => {
    shutdown.serving();
    for (const signal of ['SIGTERM', 'SIGTERM', 'SIGTERM']) signals.emit(signal);
    expect(exits).toEqual([130]);
  });

  it('end a start that hangs', () => {
    signals.emit('SIGTERM');
    expect(shutdown.signalled).toBe(true);
    vi.advanceTimersByTime(5_000);
    expect(exits).toEqual([130]);
  });

  it('are not what a fatal condition waits for', async () => {
    shutdown.serving();
    shutdown.ask(1);
    const lastWords = vi.fn();
    shutdown.lastResort(1, lastWords);
    signals.emit('SIGTERM');
    expect(await shutdown.asked).toBe(1);
    vi.advanceTimersByTime(12_000);
    expect(exits).toEqual([1]);
    expect(lastWords).toHaveBeenCalledOnce();
  });

  it('that came before anybody listened are heard', () => {
    signals.emit('SIGTERM');
    signals.emit('SIGTERM');
    const heard = vi.fn();
    whenAborted(shutdown.hurried, heard);
    expect(heard).toHaveBeenCalledOnce();
  });
});
