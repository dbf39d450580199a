// An executor whose lock lives for 3 s instead of 60, all figures scaled together, as a process that a test may kill.
// Arguments: fleet, Redis URL, fleet key file, work directory, slots, lock timing (three times in ms), and for containers
// their image. Says "executor ready" like the program itself.

import { readFile } from 'node:fs/promises';
import { pino } from 'pino';
import { Roles } from '../../../src/cli/roles.js';
import type { SandboxChoice } from '../../../src/cli/sandboxes.js';
import { watchSignals } from '../../../src/cli/shutdown.js';
import { openFleet } from '../../../src/queue/fleet.js';
import { parseFleetKeys } from '../../../src/queue/seal.js';

const [name = '', url = '', keyFile = '', workDir = '', slots = '4', lock = '3000,450,900', image = ''] =
  process.argv.slice(2);
const [lockMs = 0, renewMs = 0, marginMs = 0] = lock.split(',').map(Number);
const log = pino(pino.destination(2));
const fleet = await openFleet({
  name,
  redis: { url },
  keys: parseFleetKeys(await readFile(keyFile, 'utf8')),
  log,
});
const roles = await Roles.make({
  roles: ['executor'],
  fleet,
  log,
  version: '0.0.0',
  pool: 'default',
  identity: undefined,
  slots: Number(slots),
  workDir,
  sandbox: image === '' ? { kind: 'process' } : containerOf(image),
  node: undefined,
  debug: false,
  alone: false,
  once: false,
  shipperConcurrency: 1,
  environment: process.env,
  lockTiming: { lockMs, renewMs, marginMs },
  onFatal: () => undefined,
});
const shutdown = watchSignals();
shutdown.hurried.addEventListener('abort', () => void roles.stop(performance.now() + 2_000));
await roles.start();
await shutdown.asked;
await roles.stop(performance.now() + 600_000);
await fleet.close();
shutdown.dispose();

function containerOf(name: string): SandboxChoice {
  const limits = { memoryBytes: 512 * 1024 ** 2, cpus: 1, pids: 256, logBytes: 1024 ** 2 };
  return {
    kind: 'container',
    settings: { image: name, network: 'none', mounts: [], ...limits },
    user: undefined,
  };
}
