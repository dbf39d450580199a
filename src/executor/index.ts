// `boardwalk-fleet/executor`: takes claimed runs and gives each an attempt in a sandbox. Everything is exported that an
// `Executor` is made of: its home and work directory, the gateway, the two kinds of sandbox and the interface for one of
// your own, the figures of the lock. Gateway doors, fences and attempts are its own affair. Only programs outside import
// this file.

export type { AttemptDependencies } from './attempt.js';
export type { AttemptEnd, EndReason } from './endReason.js';
export {
  /** Takes runs of its pool while a slot is free, and gives each an attempt in a sandbox. Drains when it is stopped. */
  Executor,
  /** What an executor is made of. */
  type ExecutorOptions,
} from './executor.js';
export {
  /** Lock 60 s, renewed every 10 s, with a margin of 10 s. All executors of a fleet must have the same. */
  DEFAULT_LOCK_TIMING,

  /** This process's own clocks. */
  systemClocks,
  type Clocks,
  type FenceReason,
  type LockTiming,
} from './fence.js';
export {
  /** The local run-control API of all sandboxes of an executor: a Unix socket and a bearer for each run. */
  Gateway,
  /** Where the sockets of a gateway are made. */
  type GatewayOptions,
  type GatewayTimeouts,
} from './gateway/server.js';
export {
  /** The directory of one executor process, and the socket by which neighbours see that it lives. */
  ExecutorHome,
} from './home.js';
export {
  /** The figures of docs/protocol/run-control.md 4. */
  DEFAULT_RUN_LEASE_TIMING,
  /** How the run lease is claimed and renewed. */
  type RunLeaseTiming,
} from './runLease.js';
export type { ContainerSettings, SandboxMount } from './sandbox/container/createOptions.js';
export {
  /** Each attempt in a container of its own, by Docker or Podman. */
  ContainerSandboxKind,
  /** What container sandboxes are made of. */
  type ContainerSandboxOptions,
} from './sandbox/container/kind.js';
export {
  /** Each attempt as a host process: nothing isolates it from its user. */
  ProcessSandboxKind,
  /** What process sandboxes are made of. */
  type ProcessSandboxOptions,
} from './sandbox/process/kind.js';
export {
  /** Where the bundles are that ship into a sandbox; by default those of this package. */
  findRuntimeFiles,
  /** What ships into a sandbox. */
  type RuntimeFiles,
} from './sandbox/runtimeFiles.js';
export {
  SandboxStartError,
  SandboxSurvivorsError,
  type Owner,

  /** One started attempt. */
  type Sandbox,
  type SandboxEndCause,
  type SandboxExit,
  type SandboxKind,
  type SandboxPaths,
  type SandboxSpec,
} from './sandbox/sandbox.js';
export type {
  /** How an attempt left its slot. */
  AttemptResult,
} from './settlement.js';
export {
  /** Where the directories of attempts are made. */
  WorkDirectory,
  type Removal,
  type RunDirectories,
} from './workspace.js';
