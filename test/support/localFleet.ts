// A fleet of real processes on this machine: one Redis, one control plane, and the roles as an operator starts them.
// Tests, the smoke run and the benchmark drive it through the control plane's admin API.

import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startTestRedis, type TestRedis } from './redis.js';

export const HELLO = fileURLToPath(new URL('../../examples/hello', import.meta.url));
export const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** One process of the program, its log as parsed lines. */
export class FleetProcess {
  readonly name: string;
  readonly child: ChildProcess;
  readonly #lines: string[] = [];
  readonly #waiters = new Set<() => void>();
  readonly exited: Promise<number | null>;

  constructor(
    name: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
    entry = [MAIN],
  ) {
    this.name = name;
    this.child = spawn(process.execPath, [...entry, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...environment },
    });
    for (const stream of [this.child.stdout, this.child.stderr])
      if (stream !== null) createInterface({ input: stream }).on('line', (line) => this.#add(line));
    this.exited = once(this.child, 'exit').then(([code]) => {
      this.#wake();
      return code as number | null;
    });
  }

  /** Another script than the program, with arguments for node. */
  static ofNode(
    name: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>>,
  ): FleetProcess {
    return new FleetProcess(name, args, environment, []);
  }

  get output(): string {
    return this.#lines.join('\n');
  }

  /** The first line that has the text; fails when the process ends before it comes. */
  async line(text: string): Promise<string> {
    for (;;) {
      const found = this.#lines.find((line) => line.includes(text));
      if (found !== undefined) return found;
      if (this.child.exitCode !== null || this.child.signalCode !== null)
        throw new Error(`${this.name} ended before it said "${text}":\n${this.output}`);
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    return this.exited;
  }

  #add(line: string): void {
    this.#lines.push(line);
    if (this.#lines.length > 20_000) this.#lines.splice(0, 10_000);
    this.#wake();
  }

  #wake(): void {
    for (const waiter of this.#waiters) waiter();
    this.#waiters.clear();
  }
}

export interface ProgramEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The program run to its end. */
export async function runProgram(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<ProgramEnd> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...environment },
  });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

/** What the admin API says of a run; times in ms. */
export interface RunView {
  readonly status: string;
  readonly output: unknown;
  readonly error: { readonly code: string; readonly message: string; readonly hint?: string } | null;
  readonly attempts: number;
  readonly claims: number;
  readonly finalizes: number;
  readonly worker_ids: readonly string[];
}

export interface Report {
  readonly by_status: Readonly<Record<string, number>>;
  readonly double_finalized: number;
  readonly cursor_regressions: number;
  readonly duplicate_rows: number;
  readonly expired_leases: number;
}

export interface Row {
  readonly cursor: number;
  readonly event: { readonly kind: string } & Readonly<Record<string, unknown>>;
}

const TERMINAL = new Set(['completed', 'failed', 'cancelled']);

export class Admin {
  readonly #url: string;
  readonly #token: string;

  constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  async createRuns(spec: Readonly<Record<string, unknown>>): Promise<readonly string[]> {
    const { run_ids } = (await this.call('POST', 'runs', spec)) as { run_ids: string[] };
    return run_ids;
  }

  async run(id: string): Promise<RunView> {
    return (await this.call('GET', `runs/${id}`)) as RunView;
  }

  async rows(id: string): Promise<readonly Row[]> {
    return ((await this.call('GET', `runs/${id}/events`)) as { rows: Row[] }).rows;
  }

  /** The first of the runs that has reached the phase. */
  async someRun(ids: readonly string[], phase: string): Promise<string> {
    for (;;) {
      for (const id of ids) {
        const rows = await this.rows(id);
        if (rows.some(({ event }) => event.kind === 'phase' && event['name'] === phase)) return id;
      }
      await pause(50);
    }
  }

  async report(): Promise<Report> {
    return (await this.call('GET', 'report')) as Report;
  }

  /** Waits until every run has ended. */
  async finished(ids: readonly string[]): Promise<readonly RunView[]> {
    const views: RunView[] = [];
    for (const id of ids) {
      for (;;) {
        const view = await this.run(id);
        if (TERMINAL.has(view.status)) {
          views.push(view);
          break;
        }
        await pause(50);
      }
    }
    return views;
  }

  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`${this.#url}/dev/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${method} /dev/v1/${path}: ${response.status} ${answer}`);
    return answer === '' ? null : JSON.parse(answer);
  }
}

export interface LocalFleetOptions {
  readonly executors?: number;
  readonly slots?: number;
  /** Further flags of `control-plane`. */
  readonly controlPlane?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** `container`: with the engine and the image of the environment. Default `process`. */
  readonly sandbox?: 'process' | 'container';
}

export interface LocalFleet {
  /** Its own: fleets of one name on one engine clean up after each other, also across test files. */
  readonly name: string;
  readonly admin: Admin;
  readonly url: string;
  readonly redis: TestRedis;
  readonly dir: string;
  readonly processes: readonly FleetProcess[];
  start(name: string, args: readonly string[]): FleetProcess;
  /** Waits until every executor has cleaned up after its attempts. */
  idle(): Promise<void>;
  /** Processes on this host that belong to a sandbox of this fleet. */
  sandboxProcesses(): Promise<readonly string[]>;
  /** Drains every process and tells their exit codes by name. */
  stop(): Promise<Readonly<Record<string, number | null>>>;
}

/** One Redis, one control plane, one poller, one shipper and the executors; resolves when all of them are at work. */
export async function startLocalFleet(options: LocalFleetOptions = {}): Promise<LocalFleet> {
  const dir = await mkdtemp(join(tmpdir(), 'bwf-fleet-'));
  const redis = await startTestRedis();
  const plane = new FleetProcess('control-plane', ['control-plane', ...(options.controlPlane ?? [])]);
  const line = JSON.parse(await plane.line('"registration_token"')) as Record<
    'url' | 'registration_token' | 'admin_token',
    string
  >;
  const identityDir = join(dir, 'identity');
  const keyFile = join(dir, 'fleet.key');
  await succeed('key', ['key', 'generate', '--out', keyFile]);
  await succeed('register', [
    'register',
    '--url',
    line.url,
    '--token',
    line.registration_token,
    '--identity-dir',
    identityDir,
  ]);
  const fleetName = `test-${randomBytes(4).toString('hex')}`;
  const shared = [
    ...['--fleet', fleetName, '--redis-url', redis.url],
    ...['--fleet-key-file', keyFile, '--identity-dir', identityDir],
  ];
  const processes: FleetProcess[] = [];
  const start = (name: string, args: readonly string[]): FleetProcess => {
    // What a killed process leaves goes with the fleet's directory.
    const environment = { TMPDIR: dir, ...options.environment };
    const started = new FleetProcess(name, ['start', ...args, ...shared], environment);
    processes.push(started);
    return started;
  };
  const waits = [start('shipper', ['--roles', 'shipper']).line('shipper ready')];
  for (let n = 1; n <= (options.executors ?? 2); n += 1) {
    const args = [
      '--roles',
      'executor',
      ...(options.sandbox === 'container' ? [] : ['--host']),
      '--slots',
      String(options.slots ?? 4),
      '--work-dir',
      join(dir, `work-${n}`),
    ];
    waits.push(start(`executor-${n}`, args).line('executor ready'));
  }
  await Promise.all(waits);
  // It is online after its first answered poll, which the control plane holds until there is a run.
  start('poller', ['--roles', 'poller', '--url', line.url]);
  return {
    name: fleetName,
    admin: new Admin(line.url, line.admin_token),
    url: line.url,
    redis,
    dir,
    processes,
    start,
    idle: async () => {
      for (const name of (await readdir(dir)).filter((each) => each.startsWith('work-')))
        while ((await runDirectories(join(dir, name, 'x'))).length > 0) await pause(50);
    },
    sandboxProcesses: async () => {
      const found: string[] = [];
      for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
        const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
        if (environment.includes('BWF_SANDBOX=') && environment.includes(dir)) found.push(pid);
      }
      return found;
    },
    stop: async () => {
      const codes: Record<string, number | null> = {};
      await Promise.all(processes.map(async (each) => (codes[each.name] = await each.stop())));
      codes[plane.name] = await plane.stop();
      await redis.stop();
      await rm(dir, { recursive: true, force: true });
      return codes;
    },
  };
}

/** What attempts have below the homes of a work directory's executors. */
async function runDirectories(homes: string): Promise<readonly string[]> {
  const found = await Promise.all(
    (await readdir(homes)).map(async (home) => readdir(join(homes, home, 'runs')).catch(() => [])),
  );
  return found.flat();
}

async function succeed(name: string, args: readonly string[]): Promise<void> {
  const run = new FleetProcess(name, args);
  if ((await run.exited) !== 0) throw new Error(`${name} failed:\n${run.output}`);
}
