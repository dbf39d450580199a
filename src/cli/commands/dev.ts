// `dev DIR`: a workflow folder, the whole way on this machine with everything embedded, shown as it happens.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { parseRunEventLenient } from '../../contract/events.js';
import { OperatorError } from '../../contract/operatorError.js';
import {
  ControlPlane,
  type RunsSpec,
  type RunView,
  type StoredRow,
} from '../../dev/controlPlane/controlPlane.js';
import { readDevFile, readScriptFile } from '../../dev/devFile.js';
import { LiveView } from '../../dev/liveView.js';
import { packWorkflow } from '../../dev/workflowPackage.js';
import { PlatformHttp } from '../../platform/http.js';
import { PoolClient } from '../../platform/poolClient.js';
import type { Identity } from '../../poller/identity.js';
import { openLog } from '../log.js';
import { openEmbeddedFleet } from '../openedFleet.js';
import { EXIT, type CommandRun, type CommandInput, type Terminal } from '../program.js';
import { Roles } from '../roles.js';
import { ROLES, type SettingOf, type Settings } from '../settings.js';
import { watchSignals } from '../shutdown.js';
import { packageVersion } from '../version.js';

type DevSettings = Settings<SettingOf<'dev'>>;

/** What is left for lanes once all runs have ended; they are empty by then. */
const END_MS = 5_000;

export const runDev: CommandRun<SettingOf<'dev'>> = async (values, input, terminal) => {
  if (!values.host)
    throw new OperatorError(
      'SANDBOX_UNAVAILABLE',
      'This version executes programs as processes of this machine only.',
      {
        hint: 'Pass --host to accept that: the program is then not isolated from this machine.',
      },
    );
  const spec = await readSpec(values, input);
  const level = values.debug || values.verbose ? 'debug' : 'error';
  const log = openLog({ level, stream: terminal.stderr });
  const dir = await mkdtemp(join(tmpdir(), 'bwf-dev-'));
  try {
    return await runLocally({ values, spec, dir, log, terminal });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
};

async function readSpec(values: DevSettings, input: CommandInput): Promise<RunsSpec> {
  const dir = input.argument ?? '.';
  const program = await packWorkflow(dir);
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
  readonly spec: RunsSpec;
  readonly dir: string;
  readonly log: Logger;
  readonly terminal: Terminal;
}

async function runLocally({ values, spec, dir, log, terminal }: LocalRun): Promise<number> {
  const shutdown = watchSignals();
  const plane = new ControlPlane();
  const shown = values.json ? new JsonRows(terminal) : new LiveRows(terminal, values.runs);
  plane.onRow((runId, row) => shown.row(runId, row));
  try {
    const identity = await enrol(plane);
    const opened = await openEmbeddedFleet('dev', join(dir, 'redis'), log);
    try {
      const roles = await Roles.make({
        roles: ROLES,
        fleet: opened.fleet,
        log,
        identity,
        version: packageVersion(),
        pool: identity.pool,
        slots: values.slots,
        workDir: join(dir, 'work'),
        node: values.node,
        debug: values.debug,
        alone: true,
        once: false,
        shipperConcurrency: 32,
        environment: terminal.environment,
        onFatal: (error) => log.error({ err: error }, 'the local control plane refuses us'),
        onDrain: () => undefined,
        onOnline: () => undefined,
        onAttemptEnd: () => undefined,
      });
      const runIds = plane.createRuns(spec);
      const done = Promise.all(runIds.map((runId) => plane.whenDone(runId)));
      // When we end before the runs do, nobody waits for them any more.
      done.catch(() => undefined);
      void shutdown.asked.then(() => {
        terminal.stderr.write('cancelling (again to end at once)\n');
        for (const runId of runIds) plane.cancel(runId);
      });
      try {
        await roles.start();
        const views = await unlessHurried(done, shutdown.hurried);
        if (views === undefined) return EXIT.secondSignal;
        runIds.forEach((runId, index) => {
          const view = views[index];
          if (view !== undefined) shown.end(runId, view, plane.rows(runId));
        });
        return views.every((view) => view.status === 'completed') ? EXIT.done : EXIT.failed;
      } finally {
        await roles.stop(performance.now() + (shutdown.hurried.aborted ? 0 : END_MS));
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

async function unlessHurried<T>(work: Promise<T>, hurried: AbortSignal): Promise<T | undefined> {
  const aborted = new Promise<undefined>((resolve) => {
    if (hurried.aborted) resolve(undefined);
    else hurried.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  return Promise.race([work, aborted]);
}

interface ShownRows {
  row(runId: string, row: StoredRow): void;
  end(runId: string, view: RunView, rows: readonly StoredRow[]): void;
}

/** Rows as they were stored, one a line, then the result; all else goes to standard error. */
class JsonRows implements ShownRows {
  readonly #terminal: Terminal;
  readonly #last = new Map<string, number>();

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  row(runId: string, row: StoredRow): void {
    // A row that came late would break the order that a reader relies on; `end` would still have it.
    if (row.cursor <= (this.#last.get(runId) ?? 0)) return;
    this.#last.set(runId, row.cursor);
    this.#terminal.stdout.write(`${JSON.stringify({ cursor: row.cursor, event: row.event })}\n`);
  }

  end(runId: string, view: RunView, rows: readonly StoredRow[]): void {
    for (const row of rows) this.row(runId, row);
    const { status, output, error } = view;
    this.#terminal.stdout.write(`${JSON.stringify({ result: { status, output, error } })}\n`);
  }
}

/** One run in full; of several, how each ends. */
class LiveRows implements ShownRows {
  readonly #view: LiveView;
  readonly #runs: number;

  constructor({ stdout }: Terminal, runs: number) {
    this.#runs = runs;
    this.#view = new LiveView({
      write: (text) => void stdout.write(text),
      columns: stdout.isTTY ? stdout.columns : null,
    });
  }

  row(_runId: string, row: StoredRow): void {
    if (this.#runs > 1) return;
    const event = parseRunEventLenient(row.event);
    if (event !== null) this.#view.show({ cursor: row.cursor, event });
  }

  end(runId: string, view: RunView): void {
    const { queued_at: queued, claimed_at: claimed, first_event_at: first, finalized_at: finalized } = view;
    const since = (at: number | null): string => (at === null ? '-' : `${at - queued} ms`);
    const error = view.error === null ? '' : ` (${view.error.code}: ${view.error.message})`;
    this.#view.note(
      `${runId} ${view.status}${error}: claimed after ${since(claimed)}, first event ${since(first)}, end ${since(finalized)}`,
    );
    if (view.error?.hint !== undefined) this.#view.note(`  ${view.error.hint}`);
  }
}
