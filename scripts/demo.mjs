// `npm run demo`: one workflow the whole way on this machine, with everything embedded. In a container where an engine
// answers and has the run image, or can pull it; else as a plain process, and it says so.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { engineClient, runningEngine } from './engine.mjs';
import { needRedisServer } from './needs.mjs';
import { LOCAL_RUN_IMAGE } from './runImage.mjs';

const PULL_MS = 60_000;

needRedisServer();
const root = join(import.meta.dirname, '..');
const main = join(root, 'dist/cli/main.js');
if (!existsSync(main))
  spawnSync(process.execPath, [join(import.meta.dirname, 'build.mjs')], { stdio: 'inherit' });

const flags = [];
const env = { ...process.env };
const engine = await runningEngine();
const image = engine === null ? null : await usableImage(engine.address);
if (image === null) {
  const why =
    engine === null
      ? 'no container engine answers'
      : 'no image with Node.js is there, and none can be pulled';
  process.stderr.write(`demo: ${why}: this run is a plain process of this machine (--host)\n\n`);
  flags.push('--host');
} else {
  process.stderr.write(`demo: this run has a container of the image ${image}\n\n`);
  Object.assign(env, { DOCKER_HOST: engine.address, BOARDWALK_FLEET_IMAGE: image });
}
const { status } = spawnSync(process.execPath, [main, 'dev', join(root, 'examples/hello'), ...flags], {
  stdio: 'inherit',
  env,
});
process.exit(status ?? 1);

/** The one that is asked for, the default, or the local one; the first that is there or comes in time. */
async function usableImage(address) {
  const docker = engineClient(address);
  const wanted = process.env.BOARDWALK_FLEET_IMAGE || 'node:24-bookworm-slim';
  for (const name of [wanted, LOCAL_RUN_IMAGE]) if (await has(docker, name)) return name;
  try {
    const abortSignal = AbortSignal.timeout(PULL_MS);
    const stream = await docker.pull(wanted, { abortSignal });
    await new Promise((resolve) => docker.modem.followProgress(stream, resolve));
  } catch {
    return null;
  }
  return (await has(docker, wanted)) ? wanted : null;
}

async function has(docker, name) {
  return docker
    .getImage(name)
    .inspect()
    .then(() => true)
    .catch(() => false);
}
