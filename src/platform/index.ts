// `boardwalk-fleet/platform`: the control plane as seen from here. One HTTP client for a process, and on it what a
// registered runner may say (`PoolClient`) and what a run's token may say (`RunClient`). Statuses are read once, in here:
// callers get unions of outcomes. Only programs outside import this file.

export { HttpAnswer, type AnswerHeaders } from './answer.js';
export type { Random } from './backoff.js';
export {
  PLATFORM_TIMEOUTS,
  PlatformHttp,

  /** A call whose answer is read whole. */
  type HttpCall,

  /** The methods that a call may have. */
  type HttpMethod,

  /** What the HTTP client of a process is made of. */
  type PlatformHttpOptions,
  type RetryPolicy,

  /** An answer whose body is still to be read. */
  type StreamAnswer,

  /** A call whose answer is read as it comes. */
  type StreamCall,
} from './http.js';
export {
  PlatformError,
  type CallFailed,
  type PlatformErrorCode,

  /** What is known of a failed call; never a secret. */
  type PlatformErrorDetails,
} from './platformError.js';
export {
  /** What a registered runner says: poll, claim, heartbeat (docs/protocol/pool.md). Enrolling is a static method. */
  PoolClient,

  /** What a claim came to. */
  type ClaimOutcome,

  /** What a beat of an assignment lease came to. */
  type HeartbeatOutcome,

  /** What a poll came to. */
  type PollOutcome,

  /** Which control plane a runner speaks to, and as whom. */
  type PoolClientOptions,

  /** What enrolling came to. */
  type RegisterOutcome,

  /** What a machine enrols with. */
  type Registration,
} from './poolClient.js';
export {
  /** What the token of one run may say (docs/protocol/run-control.md). */
  RunClient,

  /** What any call of a run may be given. */
  type CallOptions,

  /** A call that a sandbox makes through the gateway. */
  type ForwardedCall,

  /** What claims or renews a run lease. */
  type LeaseRequest,

  /** Which run, where, and its token. */
  type RunClientOptions,
} from './runClient.js';
export type {
  CallRefused,

  /** What a look at the cancel flag came to. */
  CancelOutcome,

  /** What a look at the credit came to. */
  CreditOutcome,
  DeliveryOutcome,

  /** What a forwarded call came to, its answer read whole. */
  ForwardOutcome,

  /** What a forwarded call came to, its answer still to be read. */
  ForwardStreamOutcome,

  /** What the renewal of a run lease came to. */
  RenewOutcome,

  /** What claiming a run lease came to. */
  RunClaimOutcome,
} from './runOutcomes.js';
