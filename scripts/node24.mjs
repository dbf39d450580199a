// Node.js 24, for which programs are built, from the npm package that carries its binary: into .tmp/, once.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

const PREFIX = join(import.meta.dirname, '..', '.tmp', 'node24');

/** @returns {string} path of the binary */
export function node24() {
  if (process.versions.node.startsWith('24.')) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const binary = join(PREFIX, 'node_modules', name, 'bin', 'node');
  if (existsSync(binary)) return binary;
  mkdirSync(PREFIX, { recursive: true });
  const args = ['install', '--prefix', PREFIX, '--ignore-scripts', '--no-audit', '--no-fund', `${name}@24`];
  const { status } = spawnSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0 || !existsSync(binary))
    throw new Error(`Node.js 24 can't be installed: npm ${args.join(' ')}`);
  return binary;
}
