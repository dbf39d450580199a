// What a door is made of and how much it takes. The bounds guard the executor's memory, and Redis behind it, against one
// run that sends too much.

import type { Logger } from 'pino';
import type { RunClaim } from '../../contract/runControl.js';
import type { PlatformHttp } from '../../platform/http.js';
import type { RunClient } from '../../platform/runClient.js';
import type { Lanes } from '../../queue/lane.js';
import type { SecretSet } from '../../redaction/secretSet.js';
import type { Pause } from './calls.js';

/** All sizes in bytes. */
export interface DoorLimits {
  /** One request body, where nothing else is said. The platform takes 5 MiB; what is larger gets its answer from it. */
  readonly bodyBytes: number;
  /** A model call carries the whole conversation, images included. */
  readonly inferenceBytes: number;
  /** All request bodies in hand; a model call holds its own until it ends. */
  readonly bodiesBytes: number;
  /** One telemetry frame: alone in a batch it must still fit what the platform takes. */
  readonly frameBytes: number;
  readonly framesPerBatch: number;
  /** One passed-on call with all its retries, in milliseconds (design section 7). */
  readonly callMs: number;
}

export const DEFAULT_DOOR_LIMITS: DoorLimits = {
  bodyBytes: 8 * 1024 * 1024,
  inferenceBytes: 32 * 1024 * 1024,
  bodiesBytes: 128 * 1024 * 1024,
  frameBytes: 4 * 1024 * 1024,
  framesPerBatch: 20_000,
  callMs: 25_000,
};

export interface DoorDependencies {
  readonly runId: string;
  readonly log: Logger;
  readonly lanes: Pick<Lanes, 'append' | 'appendFinalize'>;
  readonly flushes: { add(runId: string): Promise<void> };
  readonly attemptToken: string;
  /** Holds the real token. */
  readonly runClient: Pick<RunClient, 'forward' | 'forwardStream'>;
  /** For addresses that need no token: the program's archive. */
  readonly http: Pick<PlatformHttp, 'stream'>;
  readonly fence: {
    readonly signal: AbortSignal;
    /** May this attempt still act? `false` once and for all when the signal has fallen. */
    check(): boolean;
  };
  /** How long the sandbox may go on without another word, in milliseconds from now. */
  readonly watchTtlMs: () => number;
  /**
   * The platform's answer to our claim. The sandbox gets it as it came (`raw`), but with `run.attempt` and
   * `lastEventCursor` of this value, which are those of the attempt, and the lease as it stands.
   */
  readonly runClaim: RunClaim;
  /** What renew is answered with, in milliseconds since the epoch. */
  readonly leaseUntilMs: () => number;
  /** A value that must be in `secrets` when this returns. */
  readonly onSecret: (value: string) => void;
  readonly secrets: SecretSet;
  /** Called once, when the first row of this attempt is in the lane. */
  readonly onRunning: () => void;
  readonly limits?: Partial<DoorLimits>;
  /** Between two tries of a stream; tests make it short. */
  readonly pause?: Pause;
}
