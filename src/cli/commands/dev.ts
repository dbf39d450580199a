// `dev DIR`: a workflow folder, the whole way on this machine with everything embedded, shown as it happens.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { OperatorError } from '../../contract/operatorError.js';
import { ControlPlane, type RunsSpec } from '../../dev/controlPlane/controlPlane.js';
import { readDevFile, readScriptFile } from '../../dev/devFile.js';
import { packWorkflow } from '../../dev/workflowPackage.js';
import { PlatformHttp } from '../../platform/http.js';
import { PoolClient } from '../../platform/poolClient.js';
import type { Identity } from '../../poller/identity.js';
import { columnsOf, JsonRows, LiveRows, type ShownRows } from '../devOutput.js';
import { temporaryDirectory } from '../directories.js';
import { openLog } from '../log.js';
import { checkNode } from '../nodeCheck.js';
import { openEmbeddedFleet } from '../openedFleet.js';
import { EXIT, sayError, type CommandRun, type CommandInput, type Terminal } from '../program.js';
import { Roles } from '../roles.js';
import { sandboxChoice, type SandboxChoice } from '../sandboxes.js';
import { ROLES, type SettingOf, type Settings } from '../settings.js';
import { watchSignals, whenAborted } from '../shutdown.js';
import { packageVersion } from '../version.js';

type DevSettings = Settings<SettingOf<'dev'>>;

/** What is left for lanes once all runs have ended; they are empty by then. */
const END_MS = 5_000;

export const runDev: CommandRun<SettingOf<'dev'>> = async (values, input, terminal) => {
  const sandbox = sandboxChoice(values);
  const warn = (text: string): void => void terminal.stderr.write(`warning: ${text}\n`);
  const spec = await readSpec(values, input, warn);
  const tooOld = values.node === undefined ? null : await checkNode(values.node);
  if (tooOld !== null) warn(tooOld);
  const level = values.debug || values.verbose ? 'debug' : 'error';
  const log = openLog({ level, stream: terminal.stderr });
  const dir = await temporaryDirectory('bwf-dev-');
  let keeps = false;
  try {
    return await runLocally({ values, sandbox, spec, dir, log, terminal });
  } catch (error) {
    // Its error names a file below.
    keeps = error instanceof OperatorError && error.code === 'EMBEDDED_REDIS_DIED';
    throw error;
  } finally {
    if (!keeps) await rm(dir, { recursive: true, force: true });
  }
};

async function readSpec(
  values: DevSettings,
  input: CommandInput,
  warn: (text: string) => void,
): Promise<RunsSpec> {
  const dir = input.argument ?? '.';
  const { warnings, ...program } = await packWorkflow(dir);
  warnings.forEach(warn);
  const file = await readDevFile(join(dir, 'dev.json'));
  const script = values.script === undefined ? file.script : await readScriptFile(values.script);
  return {
    ...program,
    input: values.input ?? file.input,
    env: { ...file.env, ...input.pairs['env'] },
    secrets: { ...file.secrets, ...input.pairs['secret'] },
    script,
    count: values.runs,
  };
}

interface LocalRun {
  readonly values: DevSettings;
  readonly sandbox: SandboxChoice;
  readonly spec: RunsSpec;
  readonly dir: string;
  readonly log: Logger;
  readonly terminal: Terminal;
}

async function runLocally({ values, sandbox, spec, dir, log, terminal }: LocalRun): Promise<number> {
  const shutdown = watchSignals();
  const plane = new ControlPlane();
  const shown = rowsOn(terminal, values);
  plane.onRow((runId, row) => shown.row(runId, row));
  try {
    const identity = await enrol(plane);
    const opened = await openEmbeddedFleet('dev', join(dir, 'redis'), log);
    try {
      if (shutdown.signalled) return EXIT.secondSignal;
      // What makes going on pointless, from wherever it comes.
      let fail: (error: OperatorError) => void = () => undefined;
      const fatal = new Promise<never>((_resolve, reject) => (fail = reject));
      fatal.catch((error: unknown) =>
        shutdown.lastResort(EXIT.failed, () => {
          if (error instanceof OperatorError) sayError(error, terminal.stderr);
        }),
      );
      void opened.died.then(fail);
      const roles = await Roles.make({
        roles: ROLES,
        fleet: opened.fleet,
        log,
        identity,
        version: packageVersion(),
        pool: identity.pool,
        slots: values.slots,
        // Sockets lie below it, and have little room in their paths.
        workDir: dir,
        sandbox,
        node: values.node,
        debug: values.debug,
        alone: true,
        once: false,
        shipperConcurrency: 32,
        environment: terminal.environment,
        onFatal: fail,
      });
      const runIds = plane.createRuns(spec);
      const done = Promise.all(runIds.map((runId) => plane.whenDone(runId)));
      // When we end before the runs do, nobody waits for them any more.
      done.catch(() => undefined);
      shutdown.serving();
      void shutdown.asked.then(() => {
        terminal.stderr.write('cancelling (again to end at once)\n');
        for (const runId of runIds) plane.cancel(runId);
      });
      let endMs = 0;
      try {
        const started = roles.start().then(() => done);
        // When something else ends us first, nobody waits for the start any more.
        started.catch(() => undefined);
        const views = await Promise.race([started, fatal, hurried(shutdown.hurried)]);
        if (views === undefined) return EXIT.secondSignal;
        endMs = END_MS;
        runIds.forEach((runId, index) => {
          const view = views[index];
          if (view !== undefined) shown.end(runId, view, plane.rows(runId));
        });
        return views.every((view) => view.status === 'completed') ? EXIT.done : EXIT.failed;
      } finally {
        await roles.stop(performance.now() + endMs);
      }
    } finally {
      await opened.close();
    }
  } finally {
    await plane.stop();
    shutdown.dispose();
  }
}

async function enrol(plane: ControlPlane): Promise<Identity> {
  const { url, registrationToken } = await plane.start();
  const http = new PlatformHttp({ userAgent: `boardwalk-fleet/${packageVersion()}` });
  try {
    const result = await PoolClient.register(http, {
      controlPlaneUrl: url,
      registrationToken,
      name: 'dev',
      labels: [],
    });
    if (result.outcome === 'failed') throw result.error;
    const { runner_id: runnerId, runner_token: runnerToken, pool } = result.registration;
    return { runnerId, runnerToken, pool, controlPlaneUrl: url, name: 'dev', createdAtMs: Date.now() };
  } finally {
    await http.close();
  }
}

function hurried(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => whenAborted(signal, () => resolve(undefined)));
}

function rowsOn({ stdout }: Terminal, { json, runs }: DevSettings): ShownRows {
  const write = (text: string): void => void stdout.write(text);
  return json ? new JsonRows(write) : new LiveRows(write, { columns: columnsOf(stdout), runs });
}
