// The process sandbox with real processes: what the runtime is given, how its end is told, and that nothing which it
// started outlives it. The runtimes are small scripts that stand for what a run may do.

import { spawn, type ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HandOver } from '../../../src/contract/handOver.js';
import { ProcessSandboxKind } from '../../../src/executor/sandbox/process/kind.js';
import type { Sandbox, SandboxSpec } from '../../../src/executor/sandbox/sandbox.js';

let dir: string;
let sandboxes: Sandbox[];

beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'bwf-process-')));
  sandboxes = [];
});

afterEach(async () => {
  await Promise.all(sandboxes.map((sandbox) => sandbox.stop({ graceMs: 0 })));
  rmSync(dir, { recursive: true, force: true });
});

describe('a process sandbox', () => {
  it('gives the runtime its hand-over as one line, its workspace, and exactly the environment of the run', async () => {
    const { sandbox, output } = await start(
      `let text = '';
       for await (const chunk of process.stdin) text += chunk;
       console.log(JSON.stringify({ text, cwd: process.cwd(), env: process.env }));`,
      { env: { REGION: 'north', PATH: '/usr/bin' } },
    );
    await sandbox.exited;
    const seen = JSON.parse(output.stdout[0] ?? '') as {
      text: string;
      cwd: string;
      env: Record<string, string>;
    };
    expect(seen.text.endsWith('\n')).toBe(true);
    expect(JSON.parse(seen.text)).toEqual(handOver());
    expect(seen.cwd).toBe(join(dir, 'workspace'));
    expect(seen.env).toEqual({
      REGION: 'north',
      PATH: '/usr/bin',
      BWF_SANDBOX: sandbox.id,
      BWF_RUN: 'test/run_1',
    });
  });

  it('leads a session and a process group of its own, so that a Ctrl-C at the terminal lets it finish (P23)', async () => {
    const { sandbox, output } = await start(
      `import { readFileSync } from 'node:fs';
       const [, , pgid, sid] = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ');
       console.log([process.pid, pgid, sid].join(' '));`,
    );
    await sandbox.exited;
    const [pid, pgid, sid] = (output.stdout[0] ?? '').split(' ');
    expect([pgid, sid]).toEqual([pid, pid]);
  });

  it.each([
    ['an exit code', 'process.exit(7)', { exitCode: 7, signal: null }],
    ['a clean end', '', { exitCode: 0, signal: null }],
    ['a signal', `process.kill(process.pid, 'SIGSEGV')`, { exitCode: null, signal: 'SIGSEGV' }],
    ['an exception', `throw new Error('boom')`, { exitCode: 1, signal: null }],
  ])('tells %s of the runtime (R9)', async (_what, source, exit) => {
    const { sandbox } = await start(source);
    expect(await sandbox.exited).toEqual(exit);
  });

  it('takes a runtime that ends before it has read its hand-over for an exit', async () => {
    const large = { ...handOver(), programRoot: `/${'p'.repeat(2_000_000)}` };
    const { sandbox } = await start('process.exit(3)', { handOver: large });
    expect(await sandbox.exited).toEqual({ exitCode: 3, signal: null });
  });

  it('takes a runtime that closes its standard input and goes on for a running one', async () => {
    const { sandbox, output } = await start(
      `process.on('SIGTERM', () => process.exit(0));
       process.stdin.destroy();
       console.log('closed');
       setInterval(() => {}, 1000);`,
      { handOver: { ...handOver(), programRoot: `/${'p'.repeat(2_000_000)}` } },
    );
    await output.until('closed');
    await sandbox.stop({ graceMs: 10_000 });
    expect(await sandbox.exited).toEqual({ exitCode: 0, signal: null });
  });
});

describe('what a runtime writes', () => {
  it('arrives line by line before the end is told, megabytes and a last line without its end included', async () => {
    const { sandbox, output } = await start(
      `let text = '';
       for (let i = 0; i < 60_000; i += 1) text += 'line ' + i + ' ' + 'x'.repeat(50) + '\\n';
       process.stdout.write(text + 'the end');
       process.stderr.write('trouble\\r\\n\\nmore');`,
    );
    await sandbox.exited;
    expect(output.stdout).toHaveLength(60_001);
    expect(output.stdout[59_999]).toBe(`line 59999 ${'x'.repeat(50)}`);
    expect(output.stdout[60_000]).toBe('the end');
    expect(output.stderr).toEqual(['trouble', '', 'more']);
  });

  it('may be binary or one endless line', async () => {
    const { sandbox, output } = await start(
      `process.stdout.write(Buffer.from([0xff, 0xfe, 0x00, 0x0a, 0xc3]));
       process.stderr.write('y'.repeat(5_000_000));`,
    );
    await sandbox.exited;
    expect(output.stdout).toEqual(['\ufffd\ufffd\0', '\ufffd']);
    expect(output.stderr).toEqual([`${'y'.repeat(8_192)} … (4991808 more characters)`]);
  });
});

describe('stopping', () => {
  it('lets the runtime finish within its grace', async () => {
    const { sandbox, output } = await start(
      `process.on('SIGTERM', () => { console.log('winding up'); process.exit(0); });
       console.log('ready');
       setInterval(() => {}, 1000);`,
    );
    await output.until('ready');
    await sandbox.stop({ graceMs: 60_000 });
    expect(await sandbox.exited).toEqual({ exitCode: 0, signal: null });
    expect(output.stdout).toEqual(['ready', 'winding up']);
  });

  it('kills a runtime that ignores it, after the grace (P23)', async () => {
    const { sandbox, output } = await start(STUBBORN);
    await output.until('ready');
    await sandbox.stop({ graceMs: 50 });
    expect(await sandbox.exited).toEqual({ exitCode: null, signal: 'SIGKILL' });
    expect(output.stdout).toEqual(['ready', 'ignored']);
  });

  it('kills a runtime that is frozen', async () => {
    const { sandbox, output } = await start(
      `console.log('pid ' + process.pid); setInterval(() => {}, 1000);`,
    );
    const [pid = 0] = await output.pids(1);
    process.kill(pid, 'SIGSTOP');
    await sandbox.stop({ graceMs: 50 });
    expect(await sandbox.exited).toEqual({ exitCode: null, signal: 'SIGKILL' });
  });

  it('may be asked for at once, again and after the end; the shortest grace wins, and SIGTERM is sent once', async () => {
    const { sandbox, output } = await start(STUBBORN);
    await output.until('ready');
    await Promise.all([
      sandbox.stop({ graceMs: 600_000 }),
      sandbox.stop({ graceMs: 600_000 }),
      output.until('ignored').then(() => sandbox.stop({ graceMs: 0 })),
    ]);
    await sandbox.stop({ graceMs: 0 });
    await sandbox.stop({ graceMs: 600_000 });
    expect(await sandbox.exited).toEqual({ exitCode: null, signal: 'SIGKILL' });
    expect(output.stdout).toEqual(['ready', 'ignored']);
  });
});

/** What a run may leave: each prints `pid N` and lives for a minute. */
const LEFTOVERS = {
  'a child': `sh -c 'echo pid $$; exec sleep 60'`,
  'a child that ignores every signal it can': `sh -c 'trap "" TERM HUP INT; echo pid $$; sleep 60; sleep 60'`,
  'a background job of a shell that has ended': `sh -c '(echo pid $(exec sh -c "echo \\$PPID"); exec sleep 60) & exit'`,
  'a child in a session of its own': `setsid -f sh -c 'echo pid $$; exec sleep 60'`,
  'a daemon by the book': `python3 -c '
import os, time
if os.fork() > 0: os._exit(0)
os.setsid()
if os.fork() > 0: os._exit(0)
os.chdir("/")
print("pid", os.getpid(), flush=True)
null = os.open(os.devnull, os.O_RDWR)
for fd in range(3): os.dup2(null, fd)
time.sleep(60)'`,
  'an orphan with an emptied environment': `sh -c '(exec env -i sh -c "echo pid \\$\\$; exec sleep 60") & exit'`,
  'a zombie keeper': `python3 -c '
import os, time
if os.fork() == 0: os._exit(0)
print("pid", os.getpid(), flush=True)
time.sleep(60)'`,
};

const spawnLeftover = (command: string): string => `
  import { spawn } from 'node:child_process';
  spawn('/bin/sh', ['-c', ${JSON.stringify(command)}], { stdio: ['ignore', 'inherit', 'inherit'] });`;

describe.each(Object.entries(LEFTOVERS))('%s of a run', (_name, command) => {
  it('does not outlive the runtime that ends by itself', async () => {
    // The runtime ends when it is asked to by a line of its workspace, so that the leftover is surely there.
    const { sandbox, output } = await start(`${spawnLeftover(command)}
      import { existsSync } from 'node:fs';
      setInterval(() => { if (existsSync('go')) process.exit(0); }, 5);`);
    const pids = await output.pids(1);
    writeFileSync(join(dir, 'workspace', 'go'), '');
    expect(await sandbox.exited).toEqual({ exitCode: 0, signal: null });
    expect(pids.filter(isAlive)).toEqual([]);
  });

  it('does not outlive a runtime that crashes, or one that is stopped', async () => {
    const crash = await start(`${spawnLeftover(command)}
      console.log('root ' + process.pid); setInterval(() => {}, 1000);`);
    const stopped = await start(`${spawnLeftover(command)} setInterval(() => {}, 1000);`);
    const pids = [...(await crash.output.pids(1)), ...(await stopped.output.pids(1))];
    const root = await crash.output.until('root ');
    process.kill(Number(root.split(' ')[1]), 'SIGKILL');
    await stopped.sandbox.stop({ graceMs: 0 });
    expect(await crash.sandbox.exited).toEqual({ exitCode: null, signal: 'SIGKILL' });
    expect(pids.filter(isAlive)).toEqual([]);
  });
});

describe('the end of a tree', () => {
  it('reaches a daemon that left the session with an emptied environment, while its parent lives', async () => {
    const { sandbox, output } = await start(
      `${spawnLeftover(`env -i setsid sh -c 'echo pid $$; env -i setsid sh -c "echo pid \\$\\$; sleep 60" & sleep 60'`)}
       process.on('SIGTERM', () => {});
       setInterval(() => {}, 1000);`,
    );
    const pids = await output.pids(2);
    await sandbox.stop({ graceMs: 0 });
    expect(pids.filter(isAlive)).toEqual([]);
  });

  it('reaches what is started while it is at work, though only a living parent tells of it', async () => {
    const spawner = `python3 -c '
import os
for _ in range(500):
    pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], {}, setsid=True)
    print("pid", pid, flush=True)'`;
    const { sandbox, output } = await start(`${spawnLeftover(spawner)} setInterval(() => {}, 1000);`);
    await output.pids(20);
    await sandbox.stop({ graceMs: 0 });
    expect(output.allPids().filter(isAlive)).toEqual([]);
  });

  it('leaves processes of the host alone, also one in the workspace', async () => {
    const { sandbox } = await start('setInterval(() => {}, 1000);');
    const bystander = spawnBystander({});
    await sandbox.stop({ graceMs: 0 });
    expect(bystander.exitCode ?? bystander.signalCode).toBe(null);
    bystander.kill('SIGKILL');
  });
});

describe('a sandbox that can not be started', () => {
  it('says so when its directory is missing', async () => {
    const { sandbox } = await start('', { workspaceDir: join(dir, 'missing') });
    const exit = await sandbox.exited;
    expect(exit).toMatchObject({ exitCode: null, signal: null });
    expect(exit.error).toContain(`${join(dir, 'missing')}: ENOENT`);
    await sandbox.stop({ graceMs: 1_000 });
  });

  it('says so when the environment is too large', async () => {
    const { sandbox } = await start('', { env: { HUGE: 'x'.repeat(3_000_000) } });
    expect((await sandbox.exited).error).toMatch(/E2BIG.*environment of the run is too large/);
  });

  it('never shows a value of the environment', async () => {
    const { sandbox } = await start('', { env: { BROKEN: 'sealed-value\0' } });
    const { error } = await sandbox.exited;
    expect(error).toContain('ERR_INVALID_ARG_VALUE');
    expect(error).not.toContain('sealed-value');
  });
});

describe('what earlier attempts left', () => {
  it('is ended for one run of one fleet, and for no other (P32)', async () => {
    const bystanders = {
      leftover: spawnBystander({ BWF_RUN: 'test/run_1' }),
      otherRun: spawnBystander({ BWF_RUN: 'test/run_12' }),
      otherFleet: spawnBystander({ BWF_RUN: 'other/run_1' }),
      mention: spawnBystander({ NOTE: 'BWF_RUN=test/run_1' }),
    };
    const ended = new Promise((resolve) =>
      bystanders.leftover.once('exit', (_code, signal) => resolve(signal)),
    );
    await kind().removeOf('run_1');
    expect(await ended).toBe('SIGKILL');
    const { otherRun, otherFleet, mention } = bystanders;
    expect([otherRun, otherFleet, mention].map((child) => child.signalCode)).toEqual([null, null, null]);
    for (const child of [otherRun, otherFleet, mention]) child.kill('SIGKILL');
  });

  it('may be nothing', async () => {
    await kind().removeOf('run_none');
  });
});

describe('the check at start', () => {
  it('warns that nothing is isolated', async () => {
    writeFileSync(join(dir, 'runtime.mjs'), '');
    expect(await kind().check()).toEqual([expect.stringContaining('not isolated')]);
  });

  it('refuses to go on without the runtime', async () => {
    await expect(kind().check()).rejects.toMatchObject({
      code: 'RUNTIME_MISSING',
      message: expect.stringContaining(join(dir, 'runtime.mjs')) as string,
    });
  });
});

const STUBBORN = `
  process.on('SIGTERM', () => console.log('ignored'));
  console.log('ready');
  setInterval(() => {}, 1000);`;

function kind(runtimePath = join(dir, 'runtime.mjs')): ProcessSandboxKind {
  const runtimeFiles = { runtimePath, sdkDir: dir };
  return new ProcessSandboxKind({ fleetName: 'test', runtimeFiles, log: pino({ level: 'silent' }) });
}

function handOver(): HandOver {
  return {
    v: 1,
    runId: 'run_1',
    workerId: 'rnr_1/asg_1',
    gateway: { socketPath: join(dir, 'g.sock'), bearer: 'bearer' },
    workspaceDir: join(dir, 'workspace'),
    hostSocketDir: join(dir, 'tmp'),
    programRoot: join(dir, 'program'),
    sdkDir: dir,
    nodePath: null,
    vcpus: 1,
    stopGraceMs: 30_000,
    debug: false,
  };
}

async function start(
  source: string,
  changes: Partial<SandboxSpec> = {},
): Promise<{ sandbox: Sandbox; output: Output }> {
  const runtimePath = join(dir, `runtime-${sandboxes.length}.mjs`);
  mkdirSync(join(dir, 'workspace'), { recursive: true });
  writeFileSync(runtimePath, source);
  const output = new Output();
  const sandbox = await kind(runtimePath).start({
    sandboxId: `sbx-${process.pid}-${dir.slice(-6)}-${sandboxes.length}`,
    runId: 'run_1',
    attempt: 1,
    handOver: handOver(),
    gatewayDir: dir,
    env: { PATH: process.env['PATH'] ?? '' },
    workspaceDir: join(dir, 'workspace'),
    onLog: (stream, line) => output.add(stream, line),
    ...changes,
  });
  sandboxes.push(sandbox);
  return { sandbox, output };
}

/** Collects lines, and lets a test wait for one instead of sleeping. */
class Output {
  readonly stdout: string[] = [];
  readonly stderr: string[] = [];
  readonly #added = new EventEmitter();

  add(stream: 'stdout' | 'stderr', line: string): void {
    this[stream].push(line);
    this.#added.emit('line');
  }

  async until(start: string): Promise<string> {
    for (;;) {
      const line = this.stdout.find((candidate) => candidate.startsWith(start));
      if (line !== undefined) return line;
      await once(this.#added, 'line');
    }
  }

  async pids(count: number): Promise<readonly number[]> {
    while (this.allPids().length < count) await once(this.#added, 'line');
    return this.allPids();
  }

  allPids(): readonly number[] {
    return this.stdout.filter((line) => line.startsWith('pid ')).map((line) => Number(line.slice(4)));
  }
}

/** A process of the host that is no sandbox. It has its environment once it has written, so after its `exec`. */
function spawnBystander(env: Record<string, string>): ChildProcess {
  const path = { PATH: process.env['PATH'] ?? '' };
  return spawn('sleep', ['60'], {
    env: { ...path, ...env },
    cwd: join(dir),
    stdio: 'ignore',
    detached: true,
  });
}

/** A zombie is dead: whether its parent collects it is not the sandbox's doing. */
function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
