import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseFleetKeys, Sealer } from '../../../src/queue/seal.js';
import { startLocalFleet, type LocalFleet } from '../../support/localFleet.js';

const SECRET = 'sesame-9f1c77d2e0';

/** Reads a secret, says so, and waits until it is told to stop or an hour is over. */
const WAITING = `
import { phase, secrets, sleep } from '@boardwalk-labs/workflow';
export default async function run() {
  const value = await secrets.get('DOOR');
  console.log('the secret is ' + value);
  phase('Waiting');
  await sleep('1h');
}`;

describe('a fleet of separate processes', () => {
  let fleet: LocalFleet;
  let redis: Redis;
  beforeAll(async () => {
    fleet = await startLocalFleet({ executors: 2, slots: 2 });
    redis = new Redis(fleet.redis.url.replace('unix://', ''));
  });
  afterAll(async () => {
    redis.disconnect();
    await fleet.stop();
  });

  /** Every key of Redis with all that it holds, as text. */
  async function everything(): Promise<string> {
    const parts: string[] = [];
    for (const key of await redis.keys('*')) {
      const type = await redis.type(key);
      if (type === 'string') parts.push(key, (await redis.get(key)) ?? '');
      else if (type === 'hash') parts.push(key, ...Object.entries(await redis.hgetall(key)).flat());
      else if (type === 'list') parts.push(key, ...(await redis.lrange(key, 0, -1)));
      else if (type === 'set') parts.push(key, ...(await redis.smembers(key)));
      else if (type === 'zset') parts.push(key, ...(await redis.zrange(key, '0', '-1')));
      else if (type === 'stream') parts.push(key, JSON.stringify(await redis.xrange(key, '-', '+')));
    }
    return parts.join('\n');
  }

  it('keeps nothing secret in Redis in clear while runs are queued and running, and finalizes a cancelled run', async () => {
    const ids = await fleet.admin.createRuns({ source: WAITING, secrets: { DOOR: SECRET }, count: 8 });
    const running = await fleet.admin.someRun(ids, 'Waiting');
    const kept = await everything();
    expect(kept).toContain(running);
    // The local control plane's tokens begin with these; that they are there, but sealed, is looked at too.
    expect(kept).not.toMatch(/bwk(reg|r|run|api)_/);
    expect(kept).not.toContain(SECRET);
    const sealer = new Sealer(parseFleetKeys(await readFile(join(fleet.dir, 'fleet.key'), 'utf8')));
    const credential = sealer.open(
      `cred:${running}`,
      (await redis.get(`{bwf:${fleet.name}}:cred:${running}`)) ?? '',
    );
    expect(credential).toMatch(/bwkrun_.*bwkapi_/);

    for (const id of ids) await fleet.admin.call('POST', `runs/${id}/cancel`);
    const views = await fleet.admin.finished(ids);
    expect(new Set(views.map((view) => view.status))).toEqual(new Set(['cancelled']));
    const ran = (await fleet.admin.rows(running)).map((row) => JSON.stringify(row));
    expect(ran.join('\n')).toContain('the secret is [REDACTED]');
    expect(ran.join('\n')).not.toContain(SECRET);
    for (const each of fleet.processes) expect(each.output).not.toContain(SECRET);
  });

  it('ends hostile programs with a code each, and leaves no directory, key or process behind', async () => {
    const sources: Readonly<Record<string, string>> = {
      throws: 'export default () => { throw new Error("no"); }',
      exits: 'export default () => process.exit(7);',
      kills: 'export default () => process.kill(process.ppid, "SIGKILL");',
      daemon: `import { spawn } from 'node:child_process';
        export default () => { spawn('sleep', ['3600'], { detached: true, stdio: 'ignore' }).unref(); return 'left a daemon'; }`,
    };
    const ids: string[] = [];
    for (const source of Object.values(sources)) ids.push(...(await fleet.admin.createRuns({ source })));
    const views = await fleet.admin.finished(ids);
    const codes = Object.keys(sources).map((name, index) => [
      name,
      views[index]?.error?.code ?? views[index]?.output,
    ]);
    expect(Object.fromEntries(codes)).toEqual({
      throws: 'Error',
      exits: 'PROGRAM_ERROR',
      kills: 'RUNTIME_CRASH',
      daemon: 'left a daemon',
    });
    await fleet.idle();
    const keys = await redis.keys('*');
    const leftovers = keys.filter((key) => /:(cred|lane|lane-state):/.test(key) || key.endsWith(':lanes'));
    expect(leftovers).toEqual([]);
    expect(await fleet.sandboxProcesses()).toEqual([]);
  });

  it('counts nothing twice and nothing out of order', async () => {
    const report = await fleet.admin.report();
    expect(report).toMatchObject({ double_finalized: 0, cursor_regressions: 0, expired_leases: 0 });
  });
});
