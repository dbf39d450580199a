// `start`: the roles of a fleet in this process, from the settings to an orderly end.

import { join } from 'node:path';
import type { Logger } from 'pino';
import type { OperatorError } from '../../contract/operatorError.js';
import { readIdentity, type Identity } from '../../poller/identity.js';
import { openLog } from '../log.js';
import { usableDirectory } from '../directories.js';
import { openEmbeddedFleet, openRemoteFleet, type OpenedFleet } from '../openedFleet.js';
import { checkNode } from '../nodeCheck.js';
import {
  EXIT,
  requireGiven,
  sayError,
  type CommandRun,
  type MissingFlag,
  type Terminal,
} from '../program.js';
import { Roles } from '../roles.js';
import { sandboxChoice, type SandboxChoice } from '../sandboxes.js';
import { ROLES, type SettingOf, type Settings } from '../settings.js';
import { HURRY_MS, watchSignals, whenAborted, type Shutdown } from '../shutdown.js';
import { packageVersion } from '../version.js';

type StartSettings = Settings<SettingOf<'start'>>;

export const runStart: CommandRun<SettingOf<'start'>> = async (values, _input, terminal) => {
  const log = openLog({
    level: values.verbose || values.debug ? 'debug' : 'info',
    stream: terminal.stderr,
  });
  requireGiven(missingOf(values));
  const sandbox = sandboxChoice(values);
  const identity = values.roles.includes('poller') ? await findIdentity(values) : undefined;
  const workDir = values.workDir ?? join(values.identityDir, 'work');
  const shutdown = watchSignals();
  try {
    if (values.roles.includes('executor')) {
      const tooOld = sandbox.kind === 'process' ? await checkNode(values.node) : null;
      if (tooOld !== null) log.warn(tooOld);
      await usableDirectory(
        workDir,
        'work directory',
        'Name a directory that you may write to with --work-dir.',
      );
    }
    const opened = await open(values, workDir, log);
    try {
      // A signal before anything was claimed: there is nothing to drain.
      if (shutdown.signalled) return EXIT.secondSignal;
      return await serve({
        values,
        sandbox,
        identity,
        workDir,
        log,
        opened,
        shutdown,
        terminal,
      });
    } finally {
      await opened.close();
    }
  } finally {
    shutdown.dispose();
  }
};

/** All at once: a person who starts for the first time should not be sent back once a flag. */
export function missingOf({
  roles,
  url,
  redisUrl,
  fleetKeyFile,
  runnerId,
  runnerToken,
}: StartSettings): readonly MissingFlag[] {
  const missing: MissingFlag[] = [];
  if (roles.includes('poller') && url === undefined)
    missing.push({
      flag: '--url',
      why: 'the poller needs the address of the control plane',
      advice: 'Give --url URL, the address of the control plane, or leave the poller out with --roles.',
    });
  if (roles.length < ROLES.length && redisUrl === undefined)
    missing.push({
      flag: '--redis-url',
      why: 'single roles meet in a Redis of their own',
      advice: 'Give --redis-url URL, or all roles to one process.',
    });
  if (redisUrl !== undefined && fleetKeyFile === undefined)
    missing.push({
      flag: '--fleet-key-file',
      why: 'credentials must be sealed before they reach Redis',
      advice:
        'Make a key with `boardwalk-fleet key generate --out FILE` and give it to every process with --fleet-key-file FILE.',
    });
  if (roles.includes('poller') && (runnerId === undefined) !== (runnerToken === undefined))
    missing.push({
      flag: runnerId === undefined ? '--runner-id' : 'BOARDWALK_FLEET_RUNNER_TOKEN',
      why: 'a runner id and a runner token are good only together',
      advice:
        'Set BOARDWALK_FLEET_RUNNER_ID and BOARDWALK_FLEET_RUNNER_TOKEN (or BOARDWALK_FLEET_RUNNER_TOKEN_FILE).',
    });
  return missing;
}

async function findIdentity(values: StartSettings): Promise<Identity> {
  const { url = '', pool, identityDir, runnerId, runnerToken } = values;
  if (runnerToken === undefined || runnerId === undefined)
    return readIdentity({ dir: identityDir, controlPlaneUrl: url, pool });
  return { runnerId, runnerToken, controlPlaneUrl: url, pool, name: runnerId, createdAtMs: Date.now() };
}

async function open(values: StartSettings, workDir: string, log: Logger): Promise<OpenedFleet> {
  const { redisUrl, fleetKeyFile } = values;
  if (redisUrl !== undefined && fleetKeyFile !== undefined)
    return openRemoteFleet({ ...values, redisUrl, fleetKeyFile }, log);
  log.warn(
    'no --redis-url: an embedded Redis and all roles run in this process; a second machine can not join it',
  );
  return openEmbeddedFleet(values.fleet, join(workDir, 'redis'), log);
}

interface Serving {
  readonly values: StartSettings;
  readonly sandbox: SandboxChoice;
  readonly identity: Identity | undefined;
  readonly workDir: string;
  readonly log: Logger;
  readonly opened: OpenedFleet;
  readonly shutdown: Shutdown;
  readonly terminal: Terminal;
}

async function serve({
  values,
  sandbox,
  identity,
  workDir,
  log,
  opened,
  shutdown,
  terminal,
}: Serving): Promise<number> {
  let fatal: OperatorError | undefined;
  const onFatal = (error: OperatorError): void => {
    fatal ??= error;
    shutdown.ask(EXIT.failed);
  };
  const roles = await Roles.make({
    roles: values.roles,
    fleet: opened.fleet,
    log,
    version: packageVersion(),
    pool: values.pool,
    identity,
    slots: values.once ? 1 : values.slots,
    workDir,
    sandbox,
    node: values.node,
    debug: values.debug,
    shipperConcurrency: values.shipperConcurrency,
    environment: terminal.environment,
    onFatal,
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
    log.warn('second signal: running attempts are handed back, and what is left ends within seconds');
    void roles.stop(performance.now() + HURRY_MS);
  };
  void opened.died.then((error) => {
    onFatal(error);
    // Attempts that still run can't tell anybody what comes of them.
    void roles.stop(performance.now());
    shutdown.lastResort(EXIT.failed, () => sayError(error, terminal.stderr));
  });
  shutdown.serving();
  whenAborted(shutdown.hurried, hurry);
  try {
    // Whoever ends us while the roles start doesn't wait for them.
    await Promise.race([roles.start(), shutdown.asked]);
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
