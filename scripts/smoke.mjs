// `npm run fleet:smoke`: test/smoke/fleet.ts with what it needs: a Redis server, and for `--sandbox container` an engine
// and the local run image.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { needEngine } from './engine.mjs';
import { needRedisServer } from './needs.mjs';
import { needRunImage } from './runImage.mjs';

needRedisServer();
const args = process.argv.slice(2);
const inContainers = args.join(' ').replaceAll('=', ' ').includes('--sandbox container');
const engine = inContainers ? await needEngine() : undefined;
if (engine === null) {
  process.stderr.write(
    'No container engine answers. Start Docker or Podman, or name one with DOCKER_HOST.\n',
  );
  process.exit(1);
}
// The fleet ends in order by itself; a signal of the terminal reaches it too.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => undefined);
let status = 1;
try {
  const handed = engine && {
    DOCKER_HOST: engine.address,
    BWF_TEST_IMAGE: await needRunImage(engine.address),
  };
  status = await smoke({ ...process.env, ...handed });
} finally {
  await engine?.stop();
}
process.exit(status);

function smoke(env) {
  const tsx = createRequire(import.meta.url).resolve('tsx/cli');
  const script = join(import.meta.dirname, '..', 'test/smoke/fleet.ts');
  const child = spawn(process.execPath, [tsx, script, ...args], { stdio: 'inherit', env });
  return new Promise((resolve) => child.once('exit', (code) => resolve(code ?? 1)));
}
