// A first container with the limits, mounts and user of all others, which says that Node.js runs in it and that a socket
// of the executor can be reached from it. It guards against an executor that learns from failing runs what one look at
// the start would have told: no Node.js in the image, no init in the engine, mounts that lead nowhere, sockets that
// don't cross (engines in a virtual machine).

import { randomUUID } from 'node:crypto';
import { chown, mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type Docker from 'dockerode';
import type { Logger } from 'pino';
import { OperatorError } from '../../../contract/operatorError.js';
import { waitFor } from '../../../waiting/waiting.js';
import type { ExecutorHome } from '../../home.js';
import type { Owner } from '../sandbox.js';
import { ContainerSandbox } from './containerSandbox.js';
import { INSIDE, type PlacedRun } from './createOptions.js';

const PROBE_MS = 60_000;
/** What the platform builds programs for. */
const PROGRAM_NODE = 24;

/** Connects to the executor, writes wherever a run must be able to write, then says its version. */
const SCRIPT = `
const socket = require('node:net').connect(process.argv[1]);
socket.once('error', (error) => {
  console.error(error.code + ' ' + error.message);
  process.exitCode = 3;
});
socket.once('data', () => {
  for (const place of process.argv.slice(2)) require('node:fs').writeFileSync(place + '/.probe', '');
  console.log('node ' + process.versions.node);
  socket.destroy();
});`;

/** Some engines give a tmpfs the mode of the image's own directory, which may be closed to the user. */
const WRITABLE = [INSIDE.workspace, INSIDE.tmp, dirname(INSIDE.program)];

export interface ProbeOptions {
  readonly docker: Docker;
  readonly optionsOf: (run: PlacedRun) => Docker.ContainerCreateOptions;
  readonly home: ExecutorHome;
  readonly owner: Owner | null;
  readonly log: Logger;
}

/**
 * @returns what an operator should know
 * @throws OperatorError `SANDBOX_UNUSABLE`
 */
export async function probe({
  docker,
  optionsOf,
  home,
  owner,
  log,
}: ProbeOptions): Promise<readonly string[]> {
  const workspaceDir = join(home.path, 'probe');
  await mkdir(workspaceDir, { mode: 0o700 });
  if (owner !== null) await chown(workspaceDir, owner.uid, owner.gid);
  const sandboxId = randomUUID();
  const lines: string[] = [];
  const options = optionsOf({ sandboxId, runId: '', env: {}, workspaceDir, gatewayDir: home.presenceDir });
  const sandbox = await ContainerSandbox.start({
    docker,
    sandboxId,
    options: { ...options, Entrypoint: ['node', '-e', SCRIPT, INSIDE.gatewaySocket, ...WRITABLE] },
    input: '',
    onLog: (_stream, line) => lines.push(line),
    log,
  });
  const ended = await waitFor(sandbox.exited, { ms: PROBE_MS });
  await sandbox.stop({ graceMs: 0 });
  await rm(workspaceDir, { recursive: true, force: true });
  const said = lines.join(' | ').slice(-500);
  if (ended.outcome !== 'settled')
    throw unusable(`it did not come to its end in ${PROBE_MS / 1_000} s. ${said}`);
  const { exitCode, signal, error } = ended.value;
  if (error !== undefined) throw unusable(error);
  if (exitCode !== 0) throw unusable(`it ended with ${signal ?? `exit code ${String(exitCode)}`}: ${said}`);
  return versionWarnings(String(options.Image), said);
}

function versionWarnings(image: string, said: string): readonly string[] {
  const version = /node (\d+)[.\d]*/.exec(said);
  if (version === null || Number(version[1]) >= PROGRAM_NODE) return [];
  return [`The image ${image} has ${version[0]}: programs are built for Node.js ${PROGRAM_NODE}.`];
}

function unusable(why: string): OperatorError {
  return new OperatorError('SANDBOX_UNUSABLE', `A first sandbox does not work: ${why}`, {
    hint:
      'The image needs Node.js on its PATH, and the engine must see the work directory under the same path as this process.\n' +
      'Or pass --host to run programs as plain processes of this machine, without isolation.',
  });
}
