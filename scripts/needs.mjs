// What demo and tests need beyond npm packages, installed where we can (root, apt): first of all a Redis server.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const REDIS_SERVERS = ['redis-server', 'valkey-server'];

/** Whether a program of this name is on PATH. */
export function onPath(name) {
  return (process.env.PATH ?? '').split(delimiter).some((dir) => dir !== '' && existsSync(join(dir, name)));
}

/** Whether Debian packages can be installed from here. */
export function canApt() {
  return process.getuid?.() === 0 && onPath('apt-get');
}

/** @returns whether the packages are there now */
export function aptInstall(packages) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = (...args) =>
    spawnSync('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'], env }).status === 0;
  // `policy-rc.d` is not ours to write: a package may start a server of its own, which nothing of ours uses.
  apt('update', '-qq');
  return apt('install', '-y', '-qq', '--no-install-recommends', ...packages);
}

/** A Redis server on PATH, installed by apt where that is possible; ends the process with the command to use where not. */
export function needRedisServer() {
  if (REDIS_SERVERS.some(onPath)) return;
  if (canApt()) {
    process.stderr.write('redis-server is missing: installing it with apt-get\n');
    if (aptInstall(['redis-server']) && REDIS_SERVERS.some(onPath)) return;
  }
  process.stderr.write(
    [
      'A Redis server (redis-server or valkey-server) is needed and could not be installed from here.',
      '  Debian, Ubuntu:  sudo apt-get install redis-server',
      '  Fedora:          sudo dnf install valkey',
      '  macOS:           brew install redis',
      '',
    ].join('\n'),
  );
  process.exit(1);
}
