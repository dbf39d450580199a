import { describe, expect, it } from 'vitest';
import { FleetKeys } from '../../../src/queue/keys.js';

describe('fleet keys', () => {
  it('all carry the hash tag of their fleet', () => {
    const keys = new FleetKeys('north');
    const all = [
      keys.lanes,
      keys.executors,
      keys.run('r'),
      keys.lane('r'),
      keys.laneState('r'),
      keys.deadLetters('r'),
      keys.credential('r'),
      keys.identity('r'),
      keys.executor('e'),
      keys.jobLock('q', 'j'),
      keys.stalledJobs('q'),
    ];
    for (const key of all) expect(key.startsWith('{bwf:north}:')).toBe(true);
    expect(new Set(all).size).toBe(all.length);
  });

  it('keep their tag whatever an id holds', () => {
    expect(new FleetKeys('north').run('}{bwf:south}:run:x')).toMatch(/^\{bwf:north\}:run:/);
  });

  it.each(['', 'a b', '}{', 'ü', '-x', 'x'.repeat(65)])('refuse the fleet name %j', (name) => {
    expect(() => new FleetKeys(name)).toThrow(expect.objectContaining({ code: 'FLEET_NAME_INVALID' }));
  });

  it('hash the names that the queue refuses, apart from all others', () => {
    const keys = new FleetKeys('north');
    expect(keys.runsQueue('default')).toBe('runs.default');
    const hashed = ['a:b', 'a/b', '', '}', 'x'.repeat(65), 'ä'].map((pool) => keys.runsQueue(pool));
    for (const name of hashed) expect(name).toMatch(/^runs~[A-Za-z0-9_-]{32}$/);
    expect(new Set(hashed).size).toBe(hashed.length);
  });

  it('make job ids that the queue takes: no colons, never an integer', () => {
    const keys = new FleetKeys('north');
    expect(keys.runJobId('17')).toBe('lease.17');
    expect(keys.runJobId('a:b')).toMatch(/^lease~[A-Za-z0-9_-]{32}$/);
  });
});
