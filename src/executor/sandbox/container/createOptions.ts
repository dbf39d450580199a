// What a sandbox's container is made of, as the engine is told. Pure, so that every limit can be read and tested in one
// place. It guards against a program that takes the machine along (R5: no limit at all) and against a credential where
// others can read it: nothing here but the non-secret environment comes from a run.

import type Docker from 'dockerode';
import type { Owner, SandboxPaths, SandboxSpec } from '../sandbox.js';

/** A directory of the host that sandboxes see. */
export interface SandboxMount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/** What an operator may choose. */
export interface ContainerSettings {
  readonly image: string;
  readonly network: string;
  readonly mounts: readonly SandboxMount[];
  readonly memoryBytes: number;
  readonly cpus: number;
  readonly pids: number;
  /** What the engine keeps of a container's own output. */
  readonly logBytes: number;
}

const RUNTIME_DIR = '/opt/boardwalk-fleet/runtime';
const GATEWAY_DIR = '/opt/boardwalk-fleet/gateway';
/** In memory, and gone with the container. */
const PRIVATE_DIR = '/run/boardwalk-fleet';

/** Fixed by the protocol: pool.md 12.1. */
export const INSIDE: SandboxPaths = {
  workspace: '/workspace',
  tmp: '/tmp',
  program: `${PRIVATE_DIR}/program`,
  sdk: `${RUNTIME_DIR}/sdk`,
  gatewaySocket: `${GATEWAY_DIR}/s`,
  hostSocketDir: `${PRIVATE_DIR}/h`,
};

export const LABEL = {
  fleet: 'boardwalk-fleet.fleet',
  executor: 'boardwalk-fleet.executor',
  bootId: 'boardwalk-fleet.boot-id',
  sandbox: 'boardwalk-fleet.sandbox',
  run: 'boardwalk-fleet.run',
  /** Directory of the executor on the host: there a neighbour sees whether it lives. */
  home: 'boardwalk-fleet.home',
} as const;

/** Of whom every container of an executor is. */
export interface ContainerOwner {
  readonly fleetName: string;
  readonly executorId: string;
  readonly bootId: string;
  readonly home: string;
  /** As numbers inside the container. */
  readonly user: Owner;
  /** On the host: watchdog, runtime and SDK. */
  readonly runtimeDir: string;
}

export type PlacedRun = Pick<SandboxSpec, 'sandboxId' | 'runId' | 'env' | 'workspaceDir' | 'gatewayDir'>;

export function createOptions(
  run: PlacedRun,
  settings: ContainerSettings,
  owner: ContainerOwner,
): Docker.ContainerCreateOptions {
  const { memoryBytes, cpus, pids, network, mounts } = settings;
  const { user } = owner;
  const memoryFiles = `rw,exec,nosuid,nodev,mode=1777,size=${Math.floor(memoryBytes / 2)}`;
  return {
    name: `boardwalk-fleet-${run.sandboxId}`,
    Image: settings.image,
    Entrypoint: ['node', `${RUNTIME_DIR}/watchdog.mjs`],
    Cmd: [],
    WorkingDir: INSIDE.workspace,
    User: `${user.uid}:${user.gid}`,
    Env: Object.entries(run.env).map(([key, value]) => `${key}=${value}`),
    Labels: labelsOf(run, owner),
    OpenStdin: true,
    StdinOnce: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Tty: false,
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      Init: true,
      AutoRemove: false,
      RestartPolicy: { Name: 'no' },
      NetworkMode: network,
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Memory: memoryBytes,
      // The same: no swap beyond it.
      MemorySwap: memoryBytes,
      NanoCpus: Math.round(cpus * 1e9),
      PidsLimit: pids,
      LogConfig: { Type: 'json-file', Config: { 'max-size': String(settings.logBytes), 'max-file': '1' } },
      Tmpfs: { [INSIDE.tmp]: memoryFiles, [PRIVATE_DIR]: memoryFiles },
      Mounts: [
        bind(run.workspaceDir, INSIDE.workspace, false),
        bind(run.gatewayDir, GATEWAY_DIR, true),
        bind(owner.runtimeDir, RUNTIME_DIR, true),
        ...mounts.map(({ source, target, readOnly }) => bind(source, target, readOnly)),
      ],
    },
  };
}

function labelsOf({ sandboxId, runId }: PlacedRun, owner: ContainerOwner): Record<string, string> {
  return {
    [LABEL.fleet]: owner.fleetName,
    [LABEL.executor]: owner.executorId,
    [LABEL.bootId]: owner.bootId,
    [LABEL.sandbox]: sandboxId,
    [LABEL.run]: runId,
    [LABEL.home]: owner.home,
  };
}

function bind(Source: string, Target: string, ReadOnly: boolean): Docker.MountConfig[number] {
  return { Type: 'bind', Source, Target, ReadOnly };
}
