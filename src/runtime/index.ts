// `boardwalk-fleet/runtime`: what is said to the process that ships into a sandbox, for sandboxes of another kind and for
// tests of programs. The process itself is a bundle (`findRuntimeFiles` of `boardwalk-fleet/executor` says where) and is
// started, never imported; so is the author SDK, which programs import as `@boardwalk-labs/workflow`: of that only the type
// is here, because a second copy would not know the program's host. Only programs outside import this file.

import type * as sdk from './sdk/index.js';

/** What `@boardwalk-labs/workflow` exports inside a sandbox (docs/protocol/sdk.md 1). */
export type AuthorSdk = typeof sdk;

export {
  encodeHandOver,
  EXIT_UNREACHABLE,
  /** Reads that line. @throws Error when it is none */
  parseHandOver,
  /** The one line on the standard input of a run process. */
  type HandOver,
} from '../contract/handOver.js';
export type {
  /** What `shell` resolves with. */
  ShellResult,
} from './sdk/api.js';
export type {
  /** What a call of the author SDK throws when the host refuses it. */
  HostError,
} from './sdk/hostError.js';
export type {
  /** How much a model shall think, as it is sent. */
  Reasoning,
} from './sdk/reasoning.js';
export type {
  /** What `sleep` takes. */
  SleepArgument,
} from './sdk/sleepArgument.js';
