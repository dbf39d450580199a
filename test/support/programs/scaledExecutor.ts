// An executor whose lock lives for 3 s instead of 60, all figures scaled together, as a process that a test may kill.
// Arguments: Redis URL, fleet key file, work directory. Says "executor ready" like the program itself.

import { readFile } from 'node:fs/promises';
import { pino } from 'pino';
import { Roles } from '../../../src/cli/roles.js';
import { watchSignals } from '../../../src/cli/shutdown.js';
import { openFleet } from '../../../src/queue/fleet.js';
import { parseFleetKeys } from '../../../src/queue/seal.js';

const [url = '', keyFile = '', workDir = ''] = process.argv.slice(2);
const log = pino(pino.destination(2));
const fleet = await openFleet({
  name: 'default',
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
  slots: 4,
  workDir,
  node: undefined,
  debug: false,
  alone: false,
  once: false,
  shipperConcurrency: 1,
  environment: process.env,
  lockTiming: { lockMs: 3_000, renewMs: 450, marginMs: 900 },
  onFatal: () => undefined,
});
const shutdown = watchSignals();
shutdown.hurried.addEventListener('abort', () => void roles.stop(performance.now() + 2_000));
await roles.start();
await shutdown.asked;
await roles.stop(performance.now() + 600_000);
await fleet.close();
shutdown.dispose();
