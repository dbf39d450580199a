import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FleetProcess, runProgram } from '../../support/localFleet.js';
import { startTestRedis } from '../../support/redis.js';

describe('a process that is told to end', () => {
  let dir = '';
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bwf-signals-'));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  async function shipper(redisUrl: string): Promise<FleetProcess> {
    const key = join(dir, 'fleet.key');
    expect((await runProgram(['key', 'generate', '--out', key])).code).toBe(0);
    const flags = ['--redis-url', redisUrl, '--fleet-key-file', key];
    return new FleetProcess('shipper', ['start', '--roles', 'shipper', ...flags]);
  }

  it('ends 130 after a second signal although Redis is gone', async () => {
    const redis = await startTestRedis();
    const started = await shipper(redis.url);
    await started.line('shipper ready');
    await redis.kill();
    await started.line('Redis connection lost');
    started.child.kill('SIGTERM');
    await started.line('draining');
    started.child.kill('SIGTERM');
    expect(await started.exited).toBe(130);
    await redis.stop();
  }, 30_000);

  it('ends while it still waits for Redis', async () => {
    // Documentation addresses answer nobody.
    const started = await shipper('redis://192.0.2.1:6379');
    started.child.kill('SIGTERM');
    expect([130, 1, null]).toContain(await started.exited);
  }, 30_000);

  it.each(['SIGKILL', 'SIGTERM'] as const)(
    'ends 1 and names the log file when its embedded Redis ends by %s',
    async (signal) => {
      const plane = new FleetProcess('control-plane', ['control-plane', '--poll-hold', '1s']);
      const { url, registration_token: token } = JSON.parse(await plane.line('"url"')) as Record<
        string,
        string
      >;
      const own = ['--url', url ?? '', '--identity-dir', dir];
      expect((await runProgram(['register', ...own, '--token', token ?? ''])).code).toBe(0);
      const started = new FleetProcess('start', ['start', ...own, '--host']);
      await started.line('online');
      process.kill(redisBelow(started), signal);
      expect(await started.exited).toBe(1);
      expect(started.output).toContain(`Its output is in ${join(dir, 'work/redis/redis.log')}`);
      await plane.stop();
    },
    60_000,
  );
});

/** The server that a process has started. */
function redisBelow({ child }: FleetProcess): number {
  const rows = execFileSync('ps', ['-o', 'pid=,comm=', '--ppid', String(child.pid)], { encoding: 'utf8' });
  const server = rows.split('\n').find((line) => /redis|valkey/.test(line));
  return Number.parseInt(server ?? '', 10);
}
