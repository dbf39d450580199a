// How executors that share a work directory see each other, and what they remove of each other.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ExecutorHome, presenceOf, reapHomes } from '../../../src/executor/home.js';
import { silent } from '../../support/fleet.js';

/** Holds a home's presence socket like an executor, in a process of its own. */
const NEIGHBOUR = `
  const { mkdirSync } = require('node:fs');
  const [dir] = process.argv.slice(1);
  mkdirSync(dir + '/alive', { recursive: true });
  require('node:net').createServer((s) => s.on('error', () => {}).end('alive\\n')).listen(dir + '/alive/s', () => console.log('up'));`;

let workDir = '';
const neighbours: ChildProcess[] = [];
beforeEach(async () => {
  workDir = await mkdtemp(join(tmpdir(), 'bwh-'));
});
afterEach(async () => {
  for (const each of neighbours.splice(0)) each.kill('SIGKILL');
  await rm(workDir, { recursive: true, force: true });
});

async function neighbour(name: string): Promise<{ readonly home: string; readonly child: ChildProcess }> {
  const home = join(workDir, 'x', name);
  const child = spawn(process.execPath, ['-e', NEIGHBOUR, home], { stdio: ['ignore', 'pipe', 'inherit'] });
  neighbours.push(child);
  await once(child.stdout, 'data');
  return { home, child };
}

async function killed(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

describe('the home of an executor', () => {
  it('shows that its process lives, and is gone with all of it after close', async () => {
    const home = await ExecutorHome.open(workDir, 'aa');
    expect(await presenceOf(home.path)).toBe('alive');
    expect(await reapHomes(workDir, silent)).toEqual([]);
    await home.close(silent);
    expect(await readdir(join(workDir, 'x'))).toEqual([]);
    expect(await presenceOf(home.path)).toBe('gone');
  });

  it('is gone as soon as its process is killed, and alive while another’s lives', async () => {
    const { home, child } = await neighbour('bb');
    expect(await presenceOf(home)).toBe('alive');
    await killed(child);
    expect(await presenceOf(home)).toBe('gone');
  });

  it('is silent while its process is frozen, and nobody removes it (R2, P35)', async () => {
    const { home, child } = await neighbour('cc');
    child.kill('SIGSTOP');
    expect(await presenceOf(home)).toBe('silent');
    expect(await reapHomes(workDir, silent)).toEqual([]);
    child.kill('SIGCONT');
    expect(await presenceOf(home)).toBe('alive');
  });

  it('is unknown where nothing of it can be seen', async () => {
    expect(await presenceOf('/nonexistent/x/dd')).toBe('unknown');
  });
});

describe('the reaping of homes', () => {
  it('removes what a killed process left, all of it, and what never came to have a socket, once it is old', async () => {
    const dead = await neighbour('dead');
    await mkdir(join(dead.home, 'runs', 'run_1-1', 'workspace'), { recursive: true });
    await killed(dead.child);
    const { home: alive } = await neighbour('live');
    const [young, old] = [join(workDir, 'x', 'young'), join(workDir, 'x', 'old')];
    for (const path of [young, old]) await mkdir(path);
    const hourAgo = new Date(Date.now() - 3_600_000);
    await utimes(old, hourAgo, hourAgo);
    expect([...(await reapHomes(workDir, silent))].sort()).toEqual([dead.home, old].sort());
    expect((await readdir(join(workDir, 'x'))).sort()).toEqual(['live', 'young']);
    expect(await presenceOf(alive)).toBe('alive');
  });

  it('has nothing to do where there was never an executor', async () => {
    expect(await reapHomes(join(workDir, 'none'), silent)).toEqual([]);
  });
});
