// `npm run demo`: one workflow the whole way on this machine, with everything embedded.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { needRedisServer } from './needs.mjs';

needRedisServer();
const root = join(import.meta.dirname, '..');
const main = join(root, 'dist/cli/main.js');
if (!existsSync(main))
  spawnSync(process.execPath, [join(import.meta.dirname, 'build.mjs')], { stdio: 'inherit' });
const { status } = spawnSync(process.execPath, [main, 'dev', join(root, 'examples/hello'), '--host'], {
  stdio: 'inherit',
});
process.exit(status ?? 1);
