// `start`: the roles of a fleet in this process, from the settings to an orderly end.

import { join } from 'node:path';
import type { Logger } from 'pino';
import { OperatorError } from '../../contract/operatorError.js';
import { readIdentity, type Identity } from '../../poller/identity.js';
import { openLog } from '../log.js';
import { openEmbeddedFleet, openRemoteFleet, type OpenedFleet } from '../openedFleet.js';
import { EXIT, type CommandRun } from '../program.js';
import { Roles } from '../roles.js';
import { ROLES, type SettingOf, type Settings } from '../settings.js';
import { watchSignals, type Shutdown } from '../shutdown.js';
import { packageVersion } from '../version.js';

type StartSettings = Settings<SettingOf<'start'>>;

export const runStart: CommandRun<SettingOf<'start'>> = async (values, _input, terminal) => {
  const log = openLog({
    level: values.verbose || values.debug ? 'debug' : 'info',
    stream: terminal.stderr,
  });
  checkSandbox(values);
  const identity = values.roles.includes('poller') ? await findIdentity(values) : undefined;
  const workDir = values.workDir ?? join(values.identityDir, 'work');
  const shutdown = watchSignals();
  try {
    const opened = await open(values, workDir, log);
    try {
      return await serve({
        values,
        identity,
        workDir,
        log,
        opened,
        shutdown,
        environment: terminal.environment,
      });
    } finally {
      await opened.close();
    }
  } finally {
    shutdown.dispose();
  }
};

function checkSandbox(values: StartSettings): void {
  if (!values.roles.includes('executor') || values.host) return;
  throw new OperatorError(
    'SANDBOX_UNAVAILABLE',
    'This version executes programs as processes of this machine only.',
    {
      hint: 'Pass --host to accept that: programs are then not isolated from this machine. Or leave the executor out with --roles.',
    },
  );
}

async function findIdentity(values: StartSettings): Promise<Identity> {
  const { url, pool, identityDir, runnerId, runnerToken } = values;
  if (url === undefined)
    throw new OperatorError(
      'SETTING_MISSING',
      '--url is missing: the poller needs the address of the control plane.',
      {
        hint: 'Give --url URL, or leave the poller out with --roles.',
      },
    );
  if (runnerToken === undefined && runnerId === undefined)
    return readIdentity({ dir: identityDir, controlPlaneUrl: url, pool });
  if (runnerToken === undefined || runnerId === undefined)
    throw new OperatorError('SETTING_MISSING', 'A runner id and a runner token are good only together.', {
      hint: 'Set BOARDWALK_FLEET_RUNNER_ID and BOARDWALK_FLEET_RUNNER_TOKEN (or BOARDWALK_FLEET_RUNNER_TOKEN_FILE).',
    });
  return { runnerId, runnerToken, controlPlaneUrl: url, pool, name: runnerId, createdAtMs: Date.now() };
}

async function open(values: StartSettings, workDir: string, log: Logger): Promise<OpenedFleet> {
  const { redisUrl } = values;
  if (redisUrl !== undefined) return openRemoteFleet({ ...values, redisUrl }, log);
  if (values.roles.length < ROLES.length)
    throw new OperatorError(
      'SETTING_MISSING',
      '--redis-url is missing: single roles meet in a Redis of their own.',
      {
        hint: 'Give --redis-url URL, or all roles to one process.',
      },
    );
  log.warn(
    'no --redis-url: an embedded Redis and all roles run in this process; a second machine can not join it',
  );
  return openEmbeddedFleet(values.fleet, join(workDir, 'redis'), log);
}

/** What is left for hand-backs and the batches in flight after a second signal. */
const HURRY_MS = 10_000;

interface Serving {
  readonly values: StartSettings;
  readonly identity: Identity | undefined;
  readonly workDir: string;
  readonly log: Logger;
  readonly opened: OpenedFleet;
  readonly shutdown: Shutdown;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

async function serve({
  values,
  identity,
  workDir,
  log,
  opened,
  shutdown,
  environment,
}: Serving): Promise<number> {
  let fatal: OperatorError | undefined;
  const roles = await Roles.make({
    roles: values.roles,
    fleet: opened.fleet,
    log,
    version: packageVersion(),
    pool: values.pool,
    identity,
    slots: values.once ? 1 : values.slots,
    workDir,
    node: values.node,
    debug: values.debug,
    shipperConcurrency: values.shipperConcurrency,
    environment,
    onFatal: (error) => {
      fatal = error;
      shutdown.ask(EXIT.failed);
    },
    onDrain: () => {
      log.info('the control plane asks for a drain');
      shutdown.ask(EXIT.done);
    },
    onOnline: () => log.info({ url: values.url, pool: values.pool }, 'online'),
    alone: values.redisUrl === undefined,
    once: values.once,
    onAttemptEnd: (runId, result) => {
      if (!values.once || result.outcome === 'handed_back') return;
      log.info({ runId, outcome: result.outcome }, 'the one run has ended');
      shutdown.ask(result.outcome === 'finalized' && result.status === 'completed' ? EXIT.done : EXIT.failed);
    },
  });
  const hurry = (): void => {
    log.warn('second signal: running attempts are handed back');
    void roles.stop(performance.now() + HURRY_MS);
  };
  shutdown.hurried.addEventListener('abort', hurry, { once: true });
  try {
    await roles.start();
    const exitCode = await shutdown.asked;
    log.info('draining: running attempts finish and their events are shipped');
    await roles.stop(performance.now() + values.drainTimeout);
    if (fatal !== undefined) throw fatal;
    return shutdown.hurried.aborted ? EXIT.secondSignal : exitCode;
  } catch (error) {
    await roles.stop(performance.now());
    throw error;
  }
}
