// `npm run bench`: runs per second through the whole pipe, beside the raw parts it is made of.
//
// Pipe: poll, claim, seal, enqueue, take, run claim, one row, finalize, ship; the slot is a no-op (no process), all
// through the real gateway socket. Baseline: a raw BullMQ job a run whose processor sends as many bare undici POSTs as
// the pipe made requests. Same Redis, same server, same concurrency, one after the other in one process.
// What it prints is this machine's; the ratio is what to compare.

import { execFileSync, fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { request as httpRequest, Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Queue, Worker } from 'bullmq';
import { pino } from 'pino';
import { Pool } from 'undici';
import { Roles } from '../../src/cli/roles.js';
import { openFleet } from '../../src/queue/fleet.js';
import { generateFleetKey, parseFleetKeys } from '../../src/queue/seal.js';
import type { Sandbox, SandboxKind, SandboxPaths, SandboxSpec } from '../../src/executor/sandbox/sandbox.js';
import { startTestRedis } from '../support/redis.js';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    slots: { type: 'string', default: '50' },
    rounds: { type: 'string', default: '3' },
  },
});
const runs = Number(values.runs);
const slots = Number(values.slots);
const rounds = Number(values.rounds);

/** Speaks to the gateway as a runtime would, with one row, and is gone. */
class NoopSandboxKind implements SandboxKind {
  readonly name = 'none';
  readonly owner = null;

  pathsInside(host: SandboxPaths): SandboxPaths {
    return host;
  }

  check(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  start(spec: SandboxSpec): Promise<Sandbox> {
    const exited = speak(spec).then(
      () => ({ exitCode: 0, signal: null }),
      (error: unknown) => ({ exitCode: 1, signal: null, error: String(error) }),
    );
    return Promise.resolve({ id: spec.sandboxId, exited, stop: () => exited.then(() => undefined) });
  }

  removeOf(): Promise<void> {
    return Promise.resolve();
  }
}

async function speak({ runId, handOver }: SandboxSpec): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const post = (suffix: string, body: unknown): Promise<void> =>
    new Promise((resolve, reject) => {
      const payload = JSON.stringify(body);
      const req = httpRequest(
        {
          agent,
          socketPath: handOver.gateway.socketPath,
          method: 'POST',
          path: `/runner/v1/runs/${runId}/${suffix}`,
          headers: {
            authorization: `Bearer ${handOver.gateway.bearer}`,
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(payload),
          },
        },
        (res) => {
          res.resume().once('end', () => {
            if ((res.statusCode ?? 500) < 300) resolve();
            else reject(new Error(`${suffix}: ${res.statusCode}`));
          });
        },
      );
      req.once('error', reject);
      req.end(payload);
    });
  const event = { runId, turnId: runId, seq: 1, t: Date.now(), kind: 'run_status', status: 'running' };
  await post('claim', { workerId: handOver.workerId, leaseSeconds: 300 });
  await post('telemetry', { frames: [JSON.stringify({ cursor: 1, event })] });
  await post('finalize', { status: 'completed', output: null, workerId: handOver.workerId });
  agent.destroy();
}

const plane = fork(fileURLToPath(new URL('./noopPlane.ts', import.meta.url)), [], {
  execArgv: ['--import', 'tsx'],
  stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
});
const base = await new Promise<string>((resolve) =>
  plane.stdout?.once('data', (data) => resolve(String(data).trim())),
);
const redis = await startTestRedis();
const workDir = await mkdtemp(join(tmpdir(), 'bwf-bench-'));

interface Counts {
  readonly finalized: number;
  readonly requests: number;
}

async function counts(): Promise<Counts> {
  return (await (await fetch(`${base}/counts`)).json()) as Counts;
}

async function pipe(round: number): Promise<{ perSecond: number; requests: number }> {
  const fleet = await openFleet({
    name: `bench-${round}`,
    redis: redis.settings,
    keys: parseFleetKeys(generateFleetKey()),
    log: pino({ level: 'error' }),
  });
  await fetch(`${base}/give/${runs}`);
  const roles = await Roles.make({
    roles: ['poller', 'executor', 'shipper'],
    fleet,
    log: pino({ level: 'error' }, process.stderr),
    version: '0.0.0',
    pool: 'default',
    identity: {
      runnerId: 'rnr',
      runnerToken: 'bwkr',
      controlPlaneUrl: base,
      pool: 'default',
      name: 'bench',
      createdAtMs: 0,
    },
    slots,
    workDir,
    node: undefined,
    debug: false,
    alone: true,
    once: false,
    shipperConcurrency: slots,
    environment: {},
    sandbox: { kind: 'process' },
    sandboxes: new NoopSandboxKind(),
    onFatal: (error) => {
      throw error;
    },
  });
  const began = performance.now();
  await roles.start();
  let last = await counts();
  while (last.finalized < runs) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    last = await counts();
  }
  const seconds = (performance.now() - began) / 1_000;
  await roles.stop(performance.now() + 10_000);
  await fleet.close();
  return { perSecond: runs / seconds, requests: last.requests / runs };
}

async function raw(round: number, requestsPerRun: number): Promise<number> {
  const connection = { path: redis.url.replace('unix://', ''), maxRetriesPerRequest: null };
  const name = `raw-${round}`;
  const queue = new Queue(name, { connection });
  const pool = new Pool(base, { connections: slots });
  let done = 0;
  let resolveAll: () => void = () => undefined;
  const all = new Promise<void>((resolve) => (resolveAll = resolve));
  let owed = 0;
  const began = performance.now();
  const worker = new Worker(
    name,
    async () => {
      owed += requestsPerRun;
      for (; owed >= 1; owed -= 1) {
        const answer = await pool.request({ method: 'POST', path: '/noop', body: '{}' });
        await answer.body.dump();
      }
      done += 1;
      if (done === runs) resolveAll();
    },
    { connection, concurrency: slots },
  );
  const adding = (async () => {
    for (let i = 0; i < runs; i += 1) await queue.add('run', {}, { removeOnComplete: true });
  })();
  await Promise.all([all, adding]);
  const seconds = (performance.now() - began) / 1_000;
  await worker.close();
  await queue.close();
  await pool.close();
  return runs / seconds;
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

const ours: number[] = [];
const theirs: number[] = [];
let requestsPerRun = 0;
for (let round = 1; round <= rounds; round += 1) {
  const measured = await pipe(round);
  requestsPerRun = measured.requests;
  ours.push(measured.perSecond);
  theirs.push(await raw(round, measured.requests));
  process.stderr.write(
    `round ${round}: pipe ${ours.at(-1)?.toFixed(0)}/s, raw ${theirs.at(-1)?.toFixed(0)}/s\n`,
  );
}
let commit = 'unknown';
try {
  commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
} catch {
  // Not a checkout: the figures stand without it.
}
const result = {
  commit,
  node: process.version,
  runs,
  slots,
  requests_per_run: Number(requestsPerRun.toFixed(2)),
  pipe_runs_per_second: Math.round(median(ours)),
  raw_runs_per_second: Math.round(median(theirs)),
  ratio: Number((median(ours) / median(theirs)).toFixed(3)),
};
process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
plane.disconnect();
await redis.stop();
await rm(workDir, { recursive: true, force: true });
