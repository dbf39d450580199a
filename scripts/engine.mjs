// The container engine of the tests: the one that DOCKER_HOST names or that answers at its usual socket; else, for root
// on Debian, one of their own on a private socket with its own data root, which ends with the process that asked.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Docker from 'dockerode';
import { aptInstall, canApt, onPath } from './needs.mjs';

const USUAL_SOCKETS = ['/var/run/docker.sock', '/run/podman/podman.sock'];
/** docker-init of Debian's package is in `tini`. */
const PACKAGES = ['docker.io', 'busybox-static', 'tini'];
const READY_MS = 30_000;
const STOP_MS = 20_000;

/**
 * @returns {Promise<{ address: string, stop: () => Promise<void> } | null>} `null`: there is none, and none can be started
 */
export async function needEngine() {
  const running = await runningEngine();
  if (running !== null || process.platform !== 'linux' || process.getuid?.() !== 0) return running;
  if (!onPath('dockerd') || !onPath('docker-init')) {
    if (!canApt()) return null;
    process.stderr.write('no container engine answers: installing one with apt-get\n');
    if (!aptInstall(PACKAGES) || !onPath('dockerd')) return null;
    // Where services start by themselves, the package's own does.
    const started = await runningEngine();
    if (started !== null) return started;
  }
  return startPrivate();
}

/** @returns the engine that answers by itself; `null`: none does */
export async function runningEngine() {
  const named = process.env.DOCKER_HOST;
  const addresses = named ? [named] : USUAL_SOCKETS.filter(existsSync).map((path) => `unix://${path}`);
  for (const address of addresses)
    if (await answers(address)) return { address, stop: async () => undefined };
  return null;
}

/** A client of the engine at an address such as `unix:///var/run/docker.sock` or `tcp://host:2375`. */
export function engineClient(address) {
  if (address.startsWith('unix://')) return new Docker({ socketPath: address.slice('unix://'.length) });
  const { hostname, port } = new URL(address.replace(/^tcp:/, 'http:'));
  return new Docker({ protocol: 'http', host: hostname, port: Number(port || 2375) });
}

async function startPrivate() {
  // Short: engines make sockets below it.
  const dir = mkdtempSync(join(tmpdir(), 'bwe-'));
  const address = `unix://${join(dir, 'd.sock')}`;
  const logFile = join(dir, 'log');
  const log = openSync(logFile, 'w');
  const args = ['-H', address, '--data-root', join(dir, 'data'), '--exec-root', join(dir, 'x')];
  args.push('-p', join(dir, 'd.pid'), '--bridge=none', '--iptables=false');
  // A group of its own: a Ctrl-C of the terminal ends the tests first, and their engine by `stop`.
  const engine = spawn('dockerd', args, { stdio: ['ignore', log, log], detached: true });
  closeSync(log);
  const exited = new Promise((resolve) => engine.once('exit', resolve));
  engine.once('error', () => undefined);
  const stop = async () => {
    engine.kill('SIGTERM');
    await Promise.race([exited, pause(STOP_MS, undefined, { ref: false })]);
    engine.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  };
  const until = performance.now() + READY_MS;
  while (performance.now() < until && engine.exitCode === null) {
    if (await answers(address)) return { address, stop };
    await pause(50);
  }
  process.stderr.write(`the engine did not start:\n${readFileSync(logFile, 'utf8').slice(-2_000)}\n`);
  await stop();
  return null;
}

async function answers(address) {
  try {
    const ping = engineClient(address).ping();
    return (await Promise.race([ping.then(() => true), pause(5_000, false, { ref: false })])) === true;
  } catch {
    return false;
  }
}
