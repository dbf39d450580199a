// One run of the bundled runtime as a real process, with a gateway and directories of its own.

import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RunEvent } from '../../../src/contract/events.js';
import { encodeHandOver, type HandOver } from '../../../src/contract/handOver.js';
import { archiveOf } from '../../unit/runtime/tarball.js';
import { BEARER, type GatewayWorld, RUN_ID, TestGateway } from './testGateway.js';

const SANDBOX = fileURLToPath(new URL('../../../dist/sandbox/', import.meta.url));

export interface RunOptions extends Partial<Omit<GatewayWorld, 'socketPath'>> {
  /** Text of `index.mjs`. */
  readonly source?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly handOver?: Partial<HandOver>;
}

export interface TestRun {
  readonly gateway: TestGateway;
  /** Exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
  readonly stderr: () => string;
  readonly workspaceDir: string;
  readonly programRoot: string;
  readonly pid: number;
  kill(signal: NodeJS.Signals): void;
  /** Resolves when such a row has arrived. @throws Error with what the run said when it ends before */
  row(wanted: (event: RunEvent) => boolean): Promise<void>;
  /** Files that the run left in its directories, the workspace excepted. */
  leftovers(): Promise<readonly string[]>;
  dispose(): Promise<void>;
}

export async function startRun(options: RunOptions): Promise<TestRun> {
  const dir = await mkdtemp(join(tmpdir(), 'rt'));
  const [workspaceDir, tmpDir, programRoot] = ['workspace', 'tmp', 'programs'].map((name) =>
    join(dir, name),
  ) as [string, string, string];
  await Promise.all([mkdir(workspaceDir), mkdir(tmpDir)]);
  const { source = 'export default () => null', env = {}, handOver = {}, ...world } = options;
  const gateway = new TestGateway({
    archive: archiveOf([{ path: 'index.mjs', content: source }]),
    ...world,
    socketPath: join(dir, 'g.s'),
  });
  await gateway.start();
  const child = spawn(process.execPath, [join(SANDBOX, 'runtime.mjs')], {
    cwd: workspaceDir,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: workspaceDir,
      TMPDIR: tmpDir,
      RUN_ID,
      WORKSPACE_ROOT: workspaceDir,
      ...env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  child.stdout.resume();
  child.stdin.on('error', () => undefined);
  child.stdin.end(
    encodeHandOver({
      v: 1,
      runId: RUN_ID,
      workerId: 'rnr_1/asg_1',
      gateway: { socketPath: join(dir, 'g.s'), bearer: BEARER },
      workspaceDir,
      hostSocketDir: join(dir, 'h'),
      programRoot,
      sdkDir: join(SANDBOX, 'sdk'),
      nodePath: null,
      vcpus: 1,
      stopGraceMs: 30_000,
      debug: false,
      ...handOver,
    }),
  );
  const exited = new Promise<number | string>((resolve) =>
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown')),
  );
  return {
    gateway,
    exited,
    stderr: () => stderr,
    workspaceDir,
    programRoot,
    pid: child.pid ?? 0,
    kill: (signal) => void child.kill(signal),
    row: async (wanted) => {
      const ended = exited.then((code) => {
        throw new Error(`the run ended with ${code} before the row came: ${stderr}`);
      });
      ended.catch(() => undefined);
      await Promise.race([gateway.row(wanted), ended]);
    },
    leftovers: async () => {
      const programs = await readdir(join(programRoot, '.bw-runs')).catch(() => []);
      const sockets = await readdir(join(dir, 'h')).catch(() => []);
      return [...programs, ...sockets, ...(await readdir(tmpDir))];
    },
    dispose: async () => {
      child.kill('SIGKILL');
      await exited;
      await gateway.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Runs to the end. */
export async function finishedRun(options: RunOptions): Promise<{
  readonly code: number | string;
  readonly gateway: TestGateway;
  readonly stderr: string;
  readonly leftovers: readonly string[];
}> {
  const run = await startRun(options);
  try {
    const code = await run.exited;
    return { code, gateway: run.gateway, stderr: run.stderr(), leftovers: await run.leftovers() };
  } finally {
    await run.dispose();
  }
}

export function eventsOf<K extends RunEvent['kind']>(
  gateway: TestGateway,
  kind: K,
): Extract<RunEvent, { kind: K }>[] {
  return gateway.rows
    .map((row) => row.event)
    .filter((event): event is Extract<RunEvent, { kind: K }> => event.kind === kind);
}
