import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { PlatformError } from '../../../src/platform/platformError.js';
import { FailureLog } from '../../../src/poller/failureLog.js';

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

const WARN = 40;
const unreachable = (): PlatformError =>
  new PlatformError('PLATFORM_UNREACHABLE', 'poll: no answer from http://cp', { endpoint: 'poll' });
const status = (code: number): PlatformError =>
  new PlatformError('PLATFORM_STATUS', `poll: the control plane answered ${code}`, {
    endpoint: 'poll',
    status: code,
  });

function logged(work: (failures: FailureLog) => void): readonly Line[] {
  const lines: Line[] = [];
  const log = pino({ level: 'debug' }, { write: (text: string) => lines.push(JSON.parse(text) as Line) });
  work(new FailureLog('poll', 'http://cp', log));
  return lines;
}

describe('a failure that lasts', () => {
  it('is warned about once, by reason and address, and its stack is for debugging', () => {
    const lines = logged((failures) => {
      for (let n = 0; n < 5; n += 1) failures.failed(unreachable());
    });
    const warnings = lines.filter(({ level }) => level === WARN);
    expect(warnings).toMatchObject([
      {
        msg: 'poll failed, trying again',
        reason: 'poll: no answer from http://cp',
        code: 'PLATFORM_UNREACHABLE',
        url: 'http://cp',
      },
    ]);
    expect(JSON.stringify(warnings)).not.toContain('    at ');
    expect(lines.filter(({ level }) => level < WARN)).toHaveLength(5);
  });

  it('is said again when it becomes another one, and when it is over', () => {
    const lines = logged((failures) => {
      failures.failed(unreachable());
      failures.failed(status(503));
      failures.failed(status(503));
      failures.succeeded();
      failures.succeeded();
      failures.failed(unreachable());
    });
    expect(lines.filter(({ level }) => level > 20).map(({ msg }) => msg)).toEqual([
      'poll failed, trying again',
      'poll failed, trying again',
      'poll works again',
      'poll failed, trying again',
    ]);
  });

  it.each([404, 302])('makes us ask for the address on a %i', (code) => {
    const [line] = logged((failures) => failures.failed(status(code))).filter(({ level }) => level === WARN);
    expect(line?.['hint']).toBe('is --url right?');
  });
});
