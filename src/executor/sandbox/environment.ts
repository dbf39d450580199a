// The environment of the run process, in the order of protocol/pool.md 12: later rows win. It guards against two
// leaks: of the operator's own variables (cloud keys, Redis URLs) into author code, and of platform credentials into
// an environment that every child inherits. Our runtime gets its credentials over standard input, so they are absent.

import { OperatorError } from '../../contract/operatorError.js';
import type { RunCredential } from '../../queue/credentials.js';
import type { SandboxPaths } from './sandbox.js';

/** pool.md 12.2: what crosses over from the executor's own environment. Nothing else does. */
const FORWARDED_KEYS = [
  'LANG',
  'NODE_USE_ENV_PROXY',
  'HTTPS_PROXY',
  'https_proxy',
  'HTTP_PROXY',
  'http_proxy',
  'NO_PROXY',
  'no_proxy',
  'BOARDWALK_RUNNER_DEBUG',
] as const;

const FORWARDED_PREFIXES = [
  'BOARDWALK_BROWSER_',
  'BOARDWALK_DESKTOP_',
  'BOARDWALK_SCREEN_',
  'BOARDWALK_RECORDING_',
  'BOARDWALK_LIVEVIEW_',
] as const;

/** Kinds of sandboxes whose environment is made here. */
export type EnvironmentKind = 'process' | 'container';

/** pool.md 12.2, "host mode extra": a process on the host needs the host's programs and screen; a container has its own. */
const FORWARDED_TO: Readonly<Record<EnvironmentKind, readonly string[]>> = {
  process: ['PATH', 'DISPLAY'],
  container: [],
};

/**
 * Platform keys that our runtime must not find in its environment, not even from `claim.env`: it would hand them to
 * the program. `PERSIST_SCOPE_DIR` is among them because the executor handles persisted scopes itself, and
 * `BOARDWALK_TASK_CPU_UNITS` because pool.md 12.1 leaves it unset.
 */
const WITHHELD_KEYS = [
  'BOARDWALK_RUN_TOKEN',
  'BOARDWALK_API_KEY',
  'BOARDWALK_CONTROL_PLANE_URL',
  'BOARDWALK_TASK_CPU_UNITS',
  'BOARDWALK_HOST_SOCK',
  'BOARDWALK_IDENTITY_RELAY_FD',
  'PERSIST_SCOPE_DIR',
] as const;

export interface EnvironmentInput {
  readonly kind: EnvironmentKind;
  /** What is picked from: the executor's own environment. */
  readonly forwarded: Readonly<Record<string, string | undefined>>;
  /** `env` is the claim's: the resolved, non-secret variables of the run. `byoProviders` is passed on as it came. */
  readonly credential: Pick<RunCredential, 'runId' | 'workerId' | 'env' | 'byoProviders'>;
  /** As the run process sees them. */
  readonly paths: Pick<SandboxPaths, 'workspace' | 'tmp'>;
}

/**
 * The environment for our runtime in a sandbox.
 *
 * @throws OperatorError `ENVIRONMENT_INVALID` when the claim has a variable that no process can be given. The message
 *   names the variable and never its value.
 */
export function sandboxEnvironment(input: EnvironmentInput): Record<string, string> {
  const { kind, credential, paths } = input;
  const env = new Map<string, string>();
  for (const [key, value] of Object.entries(input.forwarded)) {
    if (value !== undefined && isForwarded(key, kind)) env.set(key, value);
  }
  setPlaces(env, paths);
  for (const [key, value] of Object.entries(credential.env)) {
    mustBePossible(key, value);
    env.set(key, value);
  }
  env.set('RUN_ID', credential.runId);
  env.set('WORKER_ID', credential.workerId);
  env.set('BOARDWALK_BYO_PROVIDERS', JSON.stringify(credential.byoProviders));
  env.set('WORKSPACE_ROOT', paths.workspace);
  // pool.md 12.1, order 5: nothing else than a container's own places can work there.
  if (kind === 'container') setPlaces(env, paths);
  for (const key of WITHHELD_KEYS) env.delete(key);
  return Object.fromEntries(env);
}

function setPlaces(env: Map<string, string>, { workspace, tmp }: EnvironmentInput['paths']): void {
  env.set('HOME', workspace);
  env.set('TMPDIR', tmp);
}

function isForwarded(key: string, kind: EnvironmentKind): boolean {
  const keys: readonly string[] = [...FORWARDED_KEYS, ...FORWARDED_TO[kind]];
  return keys.includes(key) || FORWARDED_PREFIXES.some((prefix) => key.startsWith(prefix));
}

function mustBePossible(key: string, value: string): void {
  if (key !== '' && !/[=\0]/.test(key) && !value.includes('\0')) return;
  throw new OperatorError(
    'ENVIRONMENT_INVALID',
    `The run's environment variable ${JSON.stringify(key.slice(0, 120))} can't be set: a name must not be empty nor ` +
      'contain `=`, and neither name nor value may contain a NUL character.',
    { hint: 'Correct it where the control plane keeps the variables of this workflow or environment.' },
  );
}
