// `boardwalk-fleet/contract`: what is said on the wire, for whoever speaks with a control plane, a runtime or a viewer.
// Schemas (zod) are strict in what is sent; the readers beside them take what a newer side adds. No I/O in here. Only
// programs outside import this file.

export { RUN_LEASE_SECONDS, RETRIED_STATUSES, RETRY_DELAYS_MS } from './callPolicy.js';
export {
  /** Whether a value can be the cursor of a row. */
  isCursor,
  /** The cursor of the `seq`-th row in a block (docs/protocol/events.md 2). */
  makeCursor,
  nextBlockAfter,
  /** Block and place of a cursor. */
  splitCursor,
  /** Cursors of one block. */
  STRIDE,
  /** Block and place of a cursor. */
  type CursorParts,
} from './cursors.js';
export {
  /** What events are grouped by. */
  CHANNELS,

  /** The channel of a kind of event. */
  channelOf,
  DEFAULT_CHANNELS,

  /** Whether that is a kind of event that we know. */
  isEventKind,
  parseRunEventLenient,

  /** Every kind of event, strictly (docs/protocol/events.md 3). To read, take `parseRunEventLenient`. */
  runEventSchema,

  /** The states of a run that a `run_status` names. */
  runStatusSchema,

  /** One of `CHANNELS`. */
  type Channel,

  /** An error as events carry it. */
  type EventError,

  /** The kinds of event that we know. */
  type EventKind,
  type EventRow,

  /** An event of a run; `kind` tells which. */
  type RunEvent,

  /** A state of a run. */
  type RunStatus,
} from './events.js';
export {
  foldRows,
  RunFold,

  /** A part of a turn as a viewer shows it: text, reasoning, a tool, a compaction. */
  type FoldedItem,

  /** A turn of an agent as a viewer shows it. */
  type FoldedTurn,

  /** What a row changed. */
  type FoldEffect,
  type FoldRow,
  type ResetReading,

  /** How rows are folded. */
  type RunFoldOptions,

  /** How a turn ended. */
  type TurnEnd,
} from './fold.js';
export {
  encodeHostFrame,
  readHostFrame,

  /** A frame between program and host, by what it is (docs/protocol/sdk.md 3). */
  type HostFrame,

  /** What a line of the host protocol turned out to be. */
  type ReadFrame,
} from './hostFrames.js';
export {
  agentOptionsSchema,
  programContextSchema,
  usageSnapshotSchema,

  /** Options of `agent` on the wire. */
  type AgentOptions,

  /** What a program is told of its run. */
  type ProgramContext,

  /** What a run has spent, and its caps. */
  type UsageSnapshot,
} from './hostPayloads.js';
export {
  clientMethods,
  clientNotifications,
  hostFrameSchema,
  hostMethods,
  hostNotifications,
  type ClientMethod,
} from './hostProtocol.js';
export {
  /** What a program asks a person (docs/protocol/sdk.md 1.3). */
  humanInputOptionsSchema,
  humanInputResultSchema,
} from './humanInput.js';
export { encodeKeySegment, isSafePathSegment, pathSegment, scopePath, type Scope } from './ids.js';
export {
  InferenceStreamError,
  parseFrameLine,
  readFrames,

  /** The frame that ends a model call by an error. */
  type ErrorFrame,

  /** A frame of a model call; `type` tells which. */
  type InferenceFrame,

  /** A tool that the model wants called. */
  type InferenceToolCall,

  /** What a model call came to. */
  type InferenceTurn,

  /** The frame that ends a model call well. */
  type ResultFrame,
  type TurnUsage,
} from './inference.js';
export type {
  /** Any JSON value. */
  Json,
  /** An object whose members nobody has checked yet. */
  UnknownRecord,
} from './json.js';
export {
  JsoncError,
  /** Reads JSON with comments and trailing commas. @throws JsoncError with line and column */
  parseJsonc,
} from './jsonc.js';
export {
  /** Reads what a deployed workflow says of itself; what is wrong in it is named, never thrown. */
  readManifest,
  /** What a deployed workflow says of itself. */
  type Manifest,
  /** A manifest and what was wrong in it. */
  type ManifestRead,
} from './manifest.js';
export { OperatorError } from './operatorError.js';
export {
  /** A model provider that the claim brings along. */
  byoProviderSchema,

  /** The answer to a claim (docs/protocol/pool.md 6). */
  claimResponseSchema,

  /** A beat of an assignment lease (docs/protocol/pool.md 7). */
  heartbeatRequestSchema,

  /** The answer to a beat. */
  heartbeatResponseSchema,

  /** A run that waits to be claimed. */
  offerSchema,

  /** The answer to a poll (docs/protocol/pool.md 5). */
  pollResponseSchema,
  readClaimResponse,
  readHeartbeatResponse,
  readPollResponse,
  readRegisterResponse,

  /** What a machine enrols with (docs/protocol/pool.md 3). */
  registerRequestSchema,

  /** The answer to enrolling; its token is shown once. */
  registerResponseSchema,

  /** A model provider that the claim brings along. */
  type ByoProvider,

  /** A won claim with its credentials. */
  type ClaimResponse,

  /** How far the run is, as a beat says. */
  type HeartbeatPhase,

  /** A beat of an assignment lease. */
  type HeartbeatRequest,

  /** The answer to a beat. */
  type HeartbeatResponse,

  /** A run that waits to be claimed. */
  type Offer,

  /** The answer to a poll. */
  type PollResponse,

  /** What a machine enrols with. */
  type RegisterRequest,

  /** The answer to enrolling. */
  type RegisterResponse,
} from './pool.js';
export {
  /** From none to the most. */
  REASONING_EFFORTS,
  /** One of `REASONING_EFFORTS`. */
  type ReasoningEffort,
} from './reasoning.js';
export {
  effectiveInput,
  finalizeRequestSchema,
  inferenceRequestSchema,
  readCancel,
  readCredit,
  readRenew,
  readRunClaim,
  readSecret,
  readVersion,

  /** What renews a run lease. */
  renewRequestSchema,
  runClaimRequestSchema,

  /** Which secret is asked for. */
  secretRequestSchema,
  telemetryRequestSchema,

  /** Tokens that a model call has spent. */
  tokenUsageRequestSchema,
  usageRequestSchema,
  type Actor,

  /** How a run ended: status, output or error. */
  type FinalizeBody,

  /** A model call. */
  type InferenceRequest,

  /** The answer to claiming a run lease: the run, and where its events go on. */
  type RunClaim,

  /** What claims or renews a run lease. */
  type RunClaimRequest,

  /** The environment that a run belongs to. */
  type RunEnvironment,
  type RunError,
  type RunRow,

  /** The deployed version of a workflow that a run executes. */
  type RunVersion,

  /** What set a run off. */
  type TriggerKind,

  /** The request that a webhook brought. */
  type TriggerRequest,
} from './runControl.js';
export {
  WireError,
  /** Which field of which answer is wrong, and how. */
  type WireProblem,
} from './wireError.js';
