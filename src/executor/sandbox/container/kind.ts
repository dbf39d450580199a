// Containers as sandboxes: what is made ready once (engine, image, network, the runtime's files), how one is started, and
// how what others have left is found. It guards against an executor that starts well and fails every run: a first
// container with the very limits of all others must come up and reach its gateway before anything is taken.

import { cp, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type Docker from 'dockerode';
import type { Logger } from 'pino';
import { encodeHandOver } from '../../../contract/handOver.js';
import { OperatorError } from '../../../contract/operatorError.js';
import type { ExecutorHome } from '../../home.js';
import type { RuntimeFiles } from '../runtimeFiles.js';
import {
  SandboxStartError,
  SandboxSurvivorsError,
  type Owner,
  type Sandbox,
  type SandboxKind,
  type SandboxPaths,
  type SandboxSpec,
} from '../sandbox.js';
import { ContainerSandbox, removeContainer } from './containerSandbox.js';
import {
  createOptions,
  INSIDE,
  LABEL,
  type ContainerOwner,
  type ContainerSettings,
  type PlacedRun,
} from './createOptions.js';
import { engineErrorText, findEngine, within } from './engine.js';
import { ensureImage } from './image.js';
import { ensureNetwork } from './network.js';
import { probe } from './probe.js';
import { listOurs, reapContainers } from './reaper.js';

/** The first user of most images, and `node` in those of Node.js. */
const USER_OF_ROOT: Owner = { uid: 1_000, gid: 1_000 };
const SELF_INSIDE_ROOTLESS: Owner = { uid: 0, gid: 0 };
const INFO_MS = 20_000;

export interface ContainerSandboxOptions {
  readonly fleetName: string;
  readonly executorId: string;
  /** '' where the system has none. */
  readonly bootId: string;
  readonly home: ExecutorHome;
  readonly runtimeFiles: RuntimeFiles;
  readonly settings: ContainerSettings;
  /** As numbers; `undefined`: this process's own user, or 1000:1000 where that is root. */
  readonly user: Owner | undefined;
  /** For `DOCKER_HOST` and the like. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
}

/** What is read of an engine's own report. */
interface EngineInfo {
  readonly NCPU: number;
  readonly SecurityOptions: readonly string[] | null;
}

interface Ready {
  readonly docker: Docker;
  readonly settings: ContainerSettings;
  readonly owner: ContainerOwner;
}

export class ContainerSandboxKind implements SandboxKind {
  readonly name = 'container';
  readonly #options: ContainerSandboxOptions;
  #ready: Ready | undefined;
  #hostOwner: Owner | null = null;

  constructor(options: ContainerSandboxOptions) {
    this.#options = options;
  }

  get owner(): Owner | null {
    return this.#hostOwner;
  }

  /** @throws OperatorError of {@link findEngine}, {@link ensureImage}, {@link ensureNetwork}, or `SANDBOX_UNUSABLE` */
  async check(): Promise<readonly string[]> {
    const { environment, log, home, runtimeFiles, fleetName, executorId, bootId } = this.#options;
    const { docker, address } = await findEngine(environment);
    const info = (await asked(within(docker.info(), INFO_MS, 'tell of itself'), address)) as EngineInfo;
    const users = this.#users(info.SecurityOptions ?? []);
    this.#hostOwner = users.onHost;
    const { settings, warnings } = fitted(this.#options.settings, info.NCPU);
    await ensureImage(docker, settings.image, log);
    await ensureNetwork(docker, settings.network);
    // An engine mounts what its own host has: in the fleet's image our package is not there, the work directory is.
    const runtimeDir = join(home.path, 'runtime');
    await mkdir(runtimeDir, { mode: 0o755 });
    await cp(dirname(runtimeFiles.runtimePath), runtimeDir, { recursive: true });
    const owner: ContainerOwner = {
      fleetName,
      executorId,
      bootId,
      home: home.path,
      user: users.inside,
      runtimeDir,
    };
    this.#ready = { docker, settings, owner };
    await asked(this.#reap(), address);
    const optionsOf = (run: PlacedRun): Docker.ContainerCreateOptions => createOptions(run, settings, owner);
    const probed = await probe({ docker, optionsOf, home, owner: users.onHost, log });
    return [...warnings, ...proxyWarnings(environment, settings.network), ...probed];
  }

  pathsInside(): SandboxPaths {
    return INSIDE;
  }

  start(spec: SandboxSpec): Promise<Sandbox> {
    const { docker, settings, owner } = this.#checked();
    return ContainerSandbox.start({
      ...spec,
      docker,
      options: createOptions(spec, settings, owner),
      input: encodeHandOver(spec.handOver),
      log: this.#options.log,
    });
  }

  async removeOf(runId: string): Promise<void> {
    const { docker } = this.#checked();
    const label = [`${LABEL.fleet}=${this.#options.fleetName}`, `${LABEL.run}=${runId}`];
    const left = await listOurs(docker, label).catch((error: unknown) => {
      throw new SandboxStartError(`The engine can't be asked: ${engineErrorText(error)}`, 'engine_lost');
    });
    for (const { Id } of left) {
      const why = await removeContainer(docker.getContainer(Id));
      if (why !== undefined) throw new SandboxSurvivorsError(`What is left of run ${runId}`, why);
    }
  }

  async #reap(): Promise<void> {
    const { docker } = this.#checked();
    const reaped = await reapContainers({ ...this.#options, docker });
    if (reaped.length > 0) this.#options.log.warn({ sandboxes: reaped }, 'leftover containers removed');
  }

  #checked(): Ready {
    if (this.#ready === undefined) throw new Error('The container engine was not checked yet.');
    return this.#ready;
  }

  /** A rootless engine shows this user as root inside, and nobody else. */
  #users(security: readonly string[]): { readonly inside: Owner; readonly onHost: Owner | null } {
    const own: Owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    const { user } = this.#options;
    if (security.some((option) => option.includes('name=rootless')))
      return { inside: SELF_INSIDE_ROOTLESS, onHost: null };
    const wanted = user ?? (own.uid === 0 ? USER_OF_ROOT : own);
    if (own.uid !== 0 && (wanted.uid !== own.uid || wanted.gid !== own.gid))
      throw new OperatorError(
        'SANDBOX_UNUSABLE',
        `--sandbox-user ${wanted.uid}:${wanted.gid}: only root may give a workspace to another user.`,
        { hint: 'Leave --sandbox-user out, or start the executor as root.' },
      );
    return { inside: wanted, onHost: own.uid === 0 ? wanted : null };
  }
}

/** @throws OperatorError: at the start, an engine that doesn't do what it must is the operator's to mend */
async function asked<T>(call: Promise<T>, address: string): Promise<T> {
  try {
    return await call;
  } catch (cause) {
    throw new OperatorError(
      'ENGINE_MISSING',
      `The container engine at ${address} is not fit for work: ${engineErrorText(cause)}.`,
      { hint: 'Look at the log of the engine.', cause },
    );
  }
}

/** An engine refuses more processors than its host has. */
function fitted(
  settings: ContainerSettings,
  processors: number,
): { readonly settings: ContainerSettings; readonly warnings: readonly string[] } {
  if (settings.cpus <= processors) return { settings, warnings: [] };
  return {
    settings: { ...settings, cpus: processors },
    warnings: [`--cpus ${settings.cpus} is more than this machine has: sandboxes get ${processors}.`],
  };
}

const PROXY_KEYS = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'];

/** P44: inside a container, the loopback is the container's own. */
function proxyWarnings(
  environment: ContainerSandboxOptions['environment'],
  network: string,
): readonly string[] {
  if (network === 'host') return [];
  return PROXY_KEYS.filter((key) =>
    /\/\/(?:[^@/]*@)?(?:localhost|127\.|\[::1\])/.test(environment[key] ?? ''),
  ).map(
    (key) =>
      `${key} names the loopback, which inside a container is the container's own: programs can't reach it.`,
  );
}
