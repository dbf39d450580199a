// Wires the roles of one process and ends them in the order in which work flows: nothing new is taken, attempts
// finish, lanes are shipped, and leases are beaten until the very last.

import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { OperatorError } from '../contract/operatorError.js';
import { Shipper } from '../events/shipper.js';
import { Executor } from '../executor/executor.js';
import { DEFAULT_LOCK_TIMING, systemClocks, type LockTiming } from '../executor/fence.js';
import { Gateway } from '../executor/gateway/server.js';
import { ExecutorHome } from '../executor/home.js';
import { DEFAULT_RUN_LEASE_TIMING } from '../executor/runLease.js';
import type { SandboxKind } from '../executor/sandbox/sandbox.js';
import type { AttemptResult } from '../executor/settlement.js';
import { findRuntimeFiles } from '../executor/sandbox/runtimeFiles.js';
import { WorkDirectory } from '../executor/workspace.js';
import { PlatformHttp } from '../platform/http.js';
import { PoolClient } from '../platform/poolClient.js';
import type { Identity } from '../poller/identity.js';
import { Poller, type PollerEnd } from '../poller/poller.js';
import type { Fleet } from '../queue/fleet.js';
import { executorId } from './openedFleet.js';
import { makeSandboxes, type SandboxChoice } from './sandboxes.js';
import type { Role } from './settings.js';

/** protocol/sdk.md and design section 8: what a program may take to stop, and what it may fail. */
const STOP_GRACE_MS = 30_000;
const MAX_ATTEMPTS = 3;
/** Enough for the poller to see that a run is done. */
const LAST_LOOK_MS = 1_000;

export interface RoleOptions {
  readonly roles: readonly Role[];
  readonly fleet: Fleet;
  readonly log: Logger;
  readonly version: string;
  readonly pool: string;
  /** Needed by the poller only. */
  readonly identity: Identity | undefined;
  readonly slots: number;
  readonly workDir: string;
  readonly sandbox: SandboxChoice;
  readonly node: string | undefined;
  readonly debug: boolean;
  readonly shipperConcurrency: number;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Default: the figures of design section 5. */
  readonly lockTiming?: LockTiming;
  /** Default: what `sandbox` says. The benchmark's slots execute nothing. */
  readonly sandboxes?: SandboxKind;
  /** Called once with what makes going on pointless: the platform refuses the identity. */
  readonly onFatal: (error: OperatorError) => void;
  /** The platform asked for a drain. */
  readonly onDrain?: () => void;
  readonly onOnline?: () => void;
  /** No other process can belong to this fleet: its Redis is embedded in this one. */
  readonly alone: boolean;
  /** Claim one run and no more. */
  readonly once: boolean;
  readonly onAttemptEnd?: (runId: string, result: AttemptResult) => void;
}

export class Roles {
  readonly #http: PlatformHttp;
  readonly #options: RoleOptions;
  readonly #poller: Poller | undefined;
  readonly #executor: Executor | undefined;
  readonly #shipper: Shipper | undefined;
  #stopping: Promise<void> | undefined;
  /** Parts whose end has begun: a deadline that is brought forward reaches them too. */
  readonly #begun = new Set<Stoppable>();
  #deadline = Infinity;

  private constructor(http: PlatformHttp, options: RoleOptions, place: ExecutorPlace | undefined) {
    this.#http = http;
    this.#options = options;
    const { roles, fleet, log } = options;
    if (roles.includes('poller') && options.identity !== undefined)
      this.#poller = makePoller(http, options, options.identity);
    if (place !== undefined) this.#executor = makeExecutor(http, options, place);
    if (roles.includes('shipper'))
      this.#shipper = new Shipper({
        fleet,
        http,
        log: log.child({ role: 'shipper' }),
        concurrency: options.shipperConcurrency,
      });
  }

  static async make(options: RoleOptions): Promise<Roles> {
    const { version, log, environment } = options;
    const http = new PlatformHttp({ userAgent: `boardwalk-fleet/${version}`, log, environment });
    const place = options.roles.includes('executor') ? await findPlace(options.workDir) : undefined;
    return new Roles(http, options, place);
  }

  /** Consumers first: what is claimed finds them ready. */
  async start(): Promise<void> {
    this.#shipper?.start();
    await this.#executor?.start();
    if (this.#poller === undefined) return;
    await this.#poller.start();
    void this.#poller.ended.then(
      (end) => this.#onPollerEnd(end),
      (error: unknown) => this.#onPollingFault(error),
    );
  }

  /**
   * Ends the roles in order. A second call may bring the deadline forward, which hands running attempts back.
   *
   * @param deadline on the clock of `performance.now()`
   */
  stop(deadline: number): Promise<void> {
    this.#deadline = Math.min(this.#deadline, deadline);
    if (this.#stopping === undefined) this.#stopping = this.#drain();
    else for (const part of this.#begun) void part.stop({ deadline: this.#deadline });
    return this.#stopping;
  }

  #onPollerEnd(end: PollerEnd): void {
    if (this.#stopping !== undefined) return;
    if (end.reason === 'drain') this.#options.onDrain?.();
    if (end.reason !== 'refused') return;
    this.#options.onFatal(
      new OperatorError(
        'IDENTITY_REFUSED',
        `The control plane refuses this runner (${end.status}): ${end.message}`,
        {
          hint:
            end.status === 401
              ? 'Its token is revoked or unknown. Register this machine again.'
              : 'Read what the control plane says; an old version must be upgraded, a barred runner allowed again.',
        },
      ),
    );
  }

  /** Polling never throws; if it does, a process that claims nothing more must not look healthy. */
  #onPollingFault(error: unknown): void {
    this.#options.log.error({ err: error }, 'polling ended by a fault');
    if (this.#stopping !== undefined) return;
    this.#options.onFatal(
      new OperatorError(
        'POLLER_FAULT',
        `Polling ended by a fault of ours: ${error instanceof Error ? error.message : String(error)}`,
        { hint: 'The log has the details; please report them. A new start goes on.', cause: error },
      ),
    );
  }

  async #drain(): Promise<void> {
    this.#poller?.drain();
    await this.#end(this.#executor);
    await this.#end(this.#shipper);
    // Runs that still wait in the queue can only be waited for where somebody else may execute them.
    if (this.#options.alone) this.#deadline = Math.min(this.#deadline, performance.now() + LAST_LOOK_MS);
    await this.#end(this.#poller);
    await this.#http.close();
  }

  async #end(part: Stoppable | undefined): Promise<void> {
    if (part === undefined) return;
    this.#begun.add(part);
    await part.stop({ deadline: this.#deadline });
  }
}

interface Stoppable {
  stop(options: { readonly deadline: number }): Promise<void>;
}

function makePoller(http: PlatformHttp, options: RoleOptions, identity: Identity): Poller {
  const { fleet, log, version, onOnline, once } = options;
  return new Poller({
    fleet,
    identity,
    once,
    onOnline,
    poolClient: new PoolClient(http, {
      controlPlaneUrl: identity.controlPlaneUrl,
      runnerToken: identity.runnerToken,
      runnerVersion: version,
    }),
    log: log.child({ role: 'poller' }),
  });
}

interface ExecutorPlace {
  readonly id: string;
  readonly home: ExecutorHome;
  readonly bootId: string | null;
}

async function findPlace(workDir: string): Promise<ExecutorPlace> {
  const id = executorId(hostname());
  return { id, home: await ExecutorHome.open(workDir, id.slice(-8)), bootId: await hostBootId() };
}

function makeExecutor(
  http: PlatformHttp,
  options: RoleOptions,
  { id, home, bootId }: ExecutorPlace,
): Executor {
  const { fleet, log, pool, slots, workDir, version, onAttemptEnd, environment } = options;
  const executorLog = log.child({ role: 'executor' });
  const runtimeFiles = findRuntimeFiles();
  return new Executor({
    id,
    fleet,
    http,
    pool,
    // Every offer that an identity of this pool gets may be executed here; queues by labels come later.
    labels: [],
    slots,
    version,
    bootId,
    host: hostname(),
    log: executorLog,
    clocks: systemClocks,
    lockTiming: options.lockTiming ?? DEFAULT_LOCK_TIMING,
    leaseTiming: DEFAULT_RUN_LEASE_TIMING,
    stopGraceMs: STOP_GRACE_MS,
    maxAttempts: MAX_ATTEMPTS,
    gateway: new Gateway({ socketDir: home.path, log: executorLog }),
    sandboxes:
      options.sandboxes ??
      makeSandboxes({
        choice: options.sandbox,
        fleetName: fleet.name,
        executorId: id,
        bootId,
        home,
        runtimeFiles,
        environment,
        log: executorLog,
      }),
    runtimeFiles,
    workDir,
    home,
    workDirectory: new WorkDirectory(home.path),
    environment,
    nodePath: options.node ?? null,
    debug: options.debug,
    onAttemptEnd: (runId, result) => onAttemptEnd?.(runId, result),
  });
}

/** Tells one boot of a host from another; only Linux says. */
async function hostBootId(): Promise<string | null> {
  try {
    return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  } catch {
    return null;
  }
}
