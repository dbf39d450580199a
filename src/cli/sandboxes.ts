// From settings to the kind of sandboxes that an executor uses.

import type { Logger } from 'pino';
import type { ExecutorHome } from '../executor/home.js';
import { ContainerSandboxKind } from '../executor/sandbox/container/kind.js';
import { ProcessSandboxKind } from '../executor/sandbox/process/kind.js';
import type { RuntimeFiles } from '../executor/sandbox/runtimeFiles.js';
import type { Owner, SandboxKind } from '../executor/sandbox/sandbox.js';
import type { ContainerSettings } from '../executor/sandbox/container/createOptions.js';
import { OperatorError } from '../contract/operatorError.js';
import { sandboxOf, type SANDBOX_SETTINGS } from './sandboxSettings.js';
import type { Settings } from './settings.js';

/** What an operator chose. */
export type SandboxChoice =
  | { readonly kind: 'process' }
  | { readonly kind: 'container'; readonly settings: ContainerSettings; readonly user: Owner | undefined };

/** @throws OperatorError when settings contradict each other */
export function sandboxChoice(values: Settings<keyof typeof SANDBOX_SETTINGS | 'node'>): SandboxChoice {
  if (sandboxOf(values) === 'process') return { kind: 'process' };
  if (values.node !== undefined)
    throw new OperatorError(
      'SETTING_INVALID',
      '--node is for --host only: a container has the Node.js of its image.',
      {
        hint: 'Leave --node out, or name another image with --image.',
        usage: true,
      },
    );
  const { image, network, mount, memory, cpus, pids, logSize, sandboxUser } = values;
  return {
    kind: 'container',
    settings: { image, network, mounts: mount, memoryBytes: memory, cpus, pids, logBytes: logSize },
    user: sandboxUser,
  };
}

export interface SandboxesOf {
  readonly choice: SandboxChoice;
  readonly fleetName: string;
  readonly executorId: string;
  readonly bootId: string | null;
  readonly home: ExecutorHome;
  readonly runtimeFiles: RuntimeFiles;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
}

export function makeSandboxes({ choice, ...options }: SandboxesOf): SandboxKind {
  if (choice.kind === 'process') return new ProcessSandboxKind(options);
  return new ContainerSandboxKind({ ...options, ...choice, bootId: options.bootId ?? '' });
}
