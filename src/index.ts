// The package as a library, `boardwalk-fleet`: what all roles stand on. A fleet's part of Redis, its keys, and the error
// that a person is meant to read. The roles themselves have entries of their own (`boardwalk-fleet/poller` and so on), so
// that a program loads only what it runs. Importing it does nothing: no connection, no timer, no output.
//
// Like the doors of the rooms, it is for programs outside: nothing in here imports it.

export { packageVersion } from './cli/version.js';
export { OperatorError } from './contract/operatorError.js';
export type {
  /** Sealed records: registered runners, and what each claim may speak with. */
  Credentials,
  IdentityRecord,
  RunCredential,
} from './queue/credentials.js';
export { RecordError, SealError } from './queue/errors.js';
export type {
  /** What an executor says of itself while it lives. */
  ExecutorRecord,
  /** The executors of a fleet that are alive. */
  Executors,
} from './queue/executors.js';
export {
  openFleet,

  /** What became of rows that were to go into a lane. */
  type AppendOutcome,
  type AttemptRecord,

  /** Wakes shippers for lanes that have work. */
  type EventsQueue,

  /** Takes flushes of the events queue, several at a time. */
  type EventsWorker,

  /** What became of a finalize that was to be a lane's last entry. */
  type FinalizeOutcome,

  /** A fleet's part of Redis, opened and checked; every role is given one. Whoever opened it closes it. */
  type Fleet,
  type Flush,

  /** What one flush of a lane is given. */
  type FlushContext,
  type FlushOutcome,

  /** An entry of a lane: a row, or the finalize behind all of them. */
  type LaneEntry,
  type LaneRow,

  /** The runs' unshipped rows, in the order of their cursors. */
  type Lanes,

  /** Where Redis is, and with which user, password and TLS. */
  type RedisSettings,

  /** What an attempt's renewal of its run record came to. */
  type RenewOutcome,

  /** The data of a job in the runs queue: ids and times only. */
  type RunJob,
  type RunPhase,
  type RunRecord,

  /** The run records, one Redis script for each step. */
  type RunStates,

  /** Takes runs of one pool while a slot is free. */
  type RunsConsumer,

  /** The queue of claimed runs, one a pool. */
  type RunsQueue,

  /** Whether an attempt may start, and with which number and cursor. */
  type StartOutcome,
  type TakenRun,
} from './queue/fleet.js';
export type {
  /** The names of all keys of a fleet in Redis. */
  FleetKeys,
} from './queue/keys.js';
export {
  generateFleetKey,
  parseFleetKeys,
  /** One key of a fleet, as `parseFleetKeys` reads it. */
  type FleetKey,
} from './queue/seal.js';
