// What becomes of a run whose attempt doesn't simply end well. Redis, socket and processes are real; the runtime is a
// small script that stands for what a run may do, and the control plane answers what the test tells it to.

import { randomUUID } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Executor } from '../../../src/executor/executor.js';
import { ExecutorHome } from '../../../src/executor/home.js';
import { systemClocks } from '../../../src/executor/fence.js';
import { Gateway } from '../../../src/executor/gateway/server.js';
import { ProcessSandboxKind } from '../../../src/executor/sandbox/process/kind.js';
import { systemProcessTable, type ProcessTable } from '../../../src/executor/sandbox/process/processTable.js';
import type { AttemptResult } from '../../../src/executor/settlement.js';
import { WorkDirectory } from '../../../src/executor/workspace.js';
import { PlatformHttp } from '../../../src/platform/http.js';
import type { Fleet, RunCredential } from '../../../src/queue/fleet.js';
import { jobOf, openTestFleet, someClaim } from '../../support/fleet.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';
import { json, Upstream } from '../gateway/doorWorld.js';

const POOL = 'default';
const SECRET = 'api-token-of-this-run';

let redis: TestRedis;
let fleet: Fleet;
beforeAll(async () => {
  redis = await startTestRedis();
  fleet = await openTestFleet(redis);
});
afterAll(async () => {
  await fleet.close();
  await redis.stop();
});

let dir: string;
let upstream: Upstream;
let http: PlatformHttp;
let executor: Executor | undefined;
let results: AttemptResult[];
let ended: () => void;
beforeEach(async () => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'bwf-attempt-')));
  upstream = new Upstream();
  await upstream.start();
  http = new PlatformHttp({ userAgent: 'test' });
  results = [];
  ended = () => undefined;
  upstream.on('/claim', grantLease);
  upstream.on('/renew', json(200, { leaseUntil: Date.now() + 300_000 }));
  upstream.on('/cancel', json(200, { cancelRequested: false }));
  upstream.on('/credit', json(200, { funded: true }));
});
afterEach(async () => {
  await executor?.stop({ deadline: performance.now() });
  executor = undefined;
  await http.close();
  await upstream.stop();
  await fleet.redis.flushall();
  rmSync(dir, { recursive: true, force: true });
});

const grantLease = json(201, {
  run: {
    id: 'run',
    orgId: 'org_1',
    workflowId: 'wf_1',
    workflowVersionId: 'wfv_1',
    environmentId: null,
    attempt: 1,
    actor: { type: 'user', user_id: 'usr_1' },
    triggerKind: 'manual',
    triggerRequest: null,
    input: null,
    triggerPayload: null,
    createdAt: 1_700_000_000_000,
  },
  leaseUntil: Date.now() + 300_000,
  lastEventCursor: 0,
  workflowVersion: 1,
  environment: null,
});

interface Over {
  /** Default: the fleet that all tests share. */
  readonly fleet?: Fleet;
  readonly processTable?: ProcessTable;
}

/** Starts an executor whose runtime is this script; it leaves its pid in the file `started`, once a start. */
async function startExecutor(script: string, over: Over = {}): Promise<void> {
  const runtimePath = join(dir, 'runtime.mjs');
  const mark = `import { appendFileSync } from 'node:fs';\nappendFileSync(${JSON.stringify(started())}, process.pid + '\\n');\n`;
  writeFileSync(runtimePath, mark + script);
  mkdirSync(join(dir, 'sdk'));
  const log = pino({ level: 'silent' });
  const home = await ExecutorHome.open(join(dir, 'work'), 'home');
  const runtimeFiles = { runtimePath, sdkDir: join(dir, 'sdk') };
  executor = new Executor({
    id: `exe_${randomUUID()}`,
    fleet: over.fleet ?? fleet,
    http,
    pool: POOL,
    labels: [],
    slots: 2,
    host: 'host',
    bootId: null,
    version: '0.0.0',
    log,
    clocks: systemClocks,
    lockTiming: { lockMs: 3_000, renewMs: 450, marginMs: 900 },
    leaseTiming: { renewMs: 100, cancelPollMs: 50, creditPollMs: 50 },
    stopGraceMs: 100,
    maxAttempts: 3,
    gateway: new Gateway({ socketDir: home.path, log }),
    workDir: join(dir, 'work'),
    home,
    sandboxes: new ProcessSandboxKind({
      fleetName: fleet.name,
      runtimeFiles,
      log,
      ...(over.processTable === undefined ? {} : { processTable: over.processTable }),
    }),
    runtimeFiles,
    workDirectory: new WorkDirectory(home.path),
    environment: { PATH: process.env['PATH'] },
    nodePath: null,
    debug: false,
    onAttemptEnd: (_runId, result) => {
      results.push(result);
      ended();
    },
  });
  await executor.start();
}

/** The processes of this host, until they can't be listed any more. */
function failingTable(): { readonly table: ProcessTable; readonly fail: () => void } {
  const real = systemProcessTable();
  let failing = false;
  const table: ProcessTable = {
    list: () => (failing ? Promise.reject(new Error('EMFILE')) : real.list()),
    startOf: (pid) => real.startOf(pid),
    isStill: (entry) => real.isStill(entry),
    marked: (entries, mark) => real.marked(entries, mark),
  };
  return { table, fail: () => (failing = true) };
}

async function queued(changes: Partial<RunCredential> = {}, on = fleet): Promise<RunCredential> {
  const claim = someClaim({ baseUrl: upstream.url, apiToken: SECRET, ...changes });
  await on.runStates.recordClaim(claim);
  await on.runs.add(jobOf(claim));
  return claim;
}

/** Resolves when so many attempts have left their slots. */
async function attempts(count: number): Promise<readonly AttemptResult[]> {
  while (results.length < count) await new Promise<void>((resolve) => (ended = resolve));
  return results;
}

async function lane(runId: string): Promise<readonly unknown[]> {
  const head = await fleet.lanes.head(runId, { maxRows: 100, maxBytes: 1_000_000 });
  return head.map((entry): unknown => (entry.kind === 'finalize' ? JSON.parse(entry.body) : entry.frame));
}

function started(): string {
  return join(dir, 'started');
}

function pids(): readonly number[] {
  return readFileSync(started(), 'utf8').trim().split('\n').map(Number);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const depth = () => fleet.runs.depth(POOL);
const EMPTY = { waiting: 0, active: 0, delayed: 0 };
/** Takes no notice of SIGTERM. */
const HANGS = `process.on('SIGTERM', () => undefined); setInterval(() => undefined, 1000);`;

describe('a run that is not ours', () => {
  it.each([
    [409, 'another worker holds the run lease, or the run is over'],
    [401, 'the run token was refused with 401'],
    [404, 'the run token was refused with 404'],
  ])('by the %i to its run claim is stepped back from, without a sandbox', async (status, why) => {
    upstream.on('/claim', json(status, { error: { code: 'NO', message: 'no' } }));
    const { runId } = await queued();
    await startExecutor(HANGS);
    expect(await attempts(1)).toEqual([{ outcome: 'stepped_back', why }]);
    expect(await depth()).toEqual(EMPTY);
    expect((await fleet.runStates.get(runId))?.leaseLostAtMs).not.toBeNull();
    expect(readdirSync(dir)).not.toContain('started');
  });

  it('because a newer claim of it is there is left to that one', async () => {
    const older = await queued();
    await fleet.runStates.recordClaim({
      ...older,
      leaseId: 'lse_newer',
      leaseExpiresAtMs: older.leaseExpiresAtMs + 1,
    });
    await startExecutor(HANGS);
    expect(await attempts(1)).toMatchObject([{ outcome: 'stepped_back' }]);
    expect(upstream.seen).toEqual([]);
    expect(await fleet.runStates.get(older.runId)).toMatchObject({ leaseId: 'lse_newer', phase: 'queued' });
  });

  it('because an earlier attempt has finalized it only gets shipped', async () => {
    const claim = await queued();
    await fleet.runStates.startAttempt({ ...claim, executorId: 'exe_dead', attemptToken: 'dead' });
    await fleet.lanes.appendFinalize(claim.runId, 'dead', '{"status":"completed","output":1}');
    await startExecutor(HANGS);
    expect(await attempts(1)).toMatchObject([{ outcome: 'stepped_back' }]);
    expect(await fleet.flushes.counts()).toMatchObject({ waiting: 1 });
    expect(await lane(claim.runId)).toEqual([{ status: 'completed', output: 1 }]);
    expect(readdirSync(dir)).not.toContain('started');
  });
});

describe('a run lease that is lost', () => {
  it('ends the sandbox and writes no finalize; the run is not started here again', async () => {
    const { runId, leaseId } = await queued();
    await startExecutor(HANGS);
    await expect.poll(() => readdirSync(dir)).toContain('started');
    upstream.on('/renew', json(409, { error: { code: 'LEASE_LOST', message: 'another has it' } }));
    const [first, second] = await attempts(2);
    expect(first).toEqual({ outcome: 'fenced', reason: 'lease_lost' });
    expect(second).toEqual({ outcome: 'stepped_back', why: 'the claim is lease_lost' });
    expect(pids().filter(isAlive)).toEqual([]);
    expect(pids()).toHaveLength(1);
    expect(await lane(runId)).toEqual([]);
    expect(await fleet.runStates.get(runId)).toMatchObject({ leaseId, status: null });
    expect(await depth()).toEqual(EMPTY);
  });
});

describe('a run that is told to stop', () => {
  it.each([
    ['cancelled', '/cancel', { cancelRequested: true }],
    ['credit_exhausted', '/credit', { funded: false }],
  ])(
    'because it is %s, and does not, is ended and finalized by the executor (R26)',
    async (reason, path, body) => {
      const { runId } = await queued();
      upstream.on(path, json(200, body));
      await startExecutor(HANGS);
      expect(await attempts(1)).toEqual([{ outcome: 'finalized', status: 'failed' }]);
      expect(await lane(runId)).toEqual([
        {
          status: 'failed',
          output: { error: { code: 'RUN_ABORTED', reason, message: `Run stopped: ${reason}` } },
        },
      ]);
      expect(pids().filter(isAlive)).toEqual([]);
    },
  );
});

describe('a sandbox that ends without a result', () => {
  it('is started again, but not without end; the last one is the evidence, without a secret (R9)', async () => {
    const { runId } = await queued();
    await startExecutor(`console.error('gave up on ${SECRET}'); process.exitCode = 7;`);
    expect(await attempts(3)).toMatchObject([
      { outcome: 'handed_back', end: { reason: 'sandbox_exit' } },
      { outcome: 'handed_back', end: { reason: 'sandbox_exit' } },
      { outcome: 'finalized', status: 'failed' },
    ]);
    expect(await lane(runId)).toEqual([
      {
        status: 'failed',
        output: {
          error: {
            code: 'SANDBOX_EXIT',
            message:
              "The run's sandbox ended 3 times without a result. Last: exit code 7; last standard error: gave up on [REDACTED]",
          },
        },
      },
    ]);
    expect(pids()).toHaveLength(3);
    expect(await depth()).toEqual(EMPTY);
  });

  it('of which something may still live keeps its lock, so that no other can start beside it (P33)', async () => {
    const { table, fail } = failingTable();
    const { runId } = await queued();
    await startExecutor(HANGS, { processTable: table });
    await expect.poll(() => readdirSync(dir)).toContain('started');
    fail();
    process.kill(pids()[0] ?? 0, 'SIGKILL');
    expect(await attempts(1)).toEqual([{ outcome: 'fenced', reason: 'sandbox_unproven' }]);
    expect(await depth()).toEqual({ waiting: 0, active: 1, delayed: 0 });
    expect(await lane(runId)).toEqual([]);
  });
});

describe('a machine that can start nothing', () => {
  it('fails no run for it, takes fewer and fewer, and goes on when it is well again', async () => {
    await startExecutor(HANGS);
    const work = join(dir, 'work');
    rmSync(work, { recursive: true });
    writeFileSync(work, 'in the way');
    const runs = [await queued(), await queued(), await queued()];
    for (const result of await attempts(3))
      expect(result).toMatchObject({ outcome: 'handed_back', end: { reason: 'sandbox_start_failed' } });
    for (const { runId } of runs) expect(await lane(runId)).toEqual([]);
    rmSync(work);
    await expect.poll(() => readdirSync(dir), { timeout: 20_000 }).toContain('started');
  });
});

describe('an executor that stops while Redis is away', () => {
  it('ends at its deadline all the same, and its program with it (P22, P25)', async () => {
    const own = await startTestRedis();
    const away = await openTestFleet(own);
    await queued({}, away);
    await startExecutor(HANGS, { fleet: away });
    await expect.poll(() => readdirSync(dir)).toContain('started');
    await own.kill();
    const stopping = executor?.stop({ deadline: performance.now() + 600_000 });
    await executor?.stop({ deadline: performance.now() + 100 });
    await stopping;
    expect(pids().filter(isAlive)).toEqual([]);
    await away.close();
    await own.stop();
  });
});

describe('the run lease of a finished run', () => {
  async function finished(): Promise<RunCredential> {
    const claim = await queued();
    upstream.on('/cancel', json(200, { cancelRequested: true }));
    await startExecutor(`process.on('SIGTERM', () => process.exit()); setInterval(() => undefined, 1000);`);
    await attempts(1);
    return claim;
  }
  const renewals = () => upstream.calls('/renew').length;
  const another = async (): Promise<void> => {
    const before = renewals();
    await expect.poll(renewals, { timeout: 10_000 }).toBeGreaterThan(before);
  };

  it('is renewed until the platform has the finalize, and the executor waits for that (P26)', async () => {
    const { runId, leaseId } = await finished();
    await another();
    let stopped = false;
    const stopping = executor?.stop({ deadline: performance.now() + 60_000 }).then(() => (stopped = true));
    await another();
    expect(stopped).toBe(false);
    await fleet.runStates.finish(runId, leaseId, { status: 'failed', answer: 'acknowledged' });
    await stopping;
  });

  it('is let go when the lane is parked, so that the platform can give the run to somebody else', async () => {
    const { runId, leaseId } = await finished();
    await another();
    await fleet.runStates.markLeaseLost(runId, leaseId);
    await executor?.stop({ deadline: Infinity });
  });
});
