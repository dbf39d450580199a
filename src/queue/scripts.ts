// The atomic steps: one Lua file each in lua/, known to a connection as a command of its own. A connection loads a
// script when it first uses it, and again after a failover to a server that has never seen it.

import { readFileSync } from 'node:fs';
import type { Redis, Result } from 'ioredis';

/** Keys first, then arguments, as the head of the script's file lists them. */
type ScriptArguments = (string | number)[];

declare module 'ioredis' {
  // The parameter must be named and bounded as the library's own.
  interface RedisCommander<Context> {
    bwfRecordClaim(...args: ScriptArguments): Result<unknown, Context>;
    bwfStartAttempt(...args: ScriptArguments): Result<unknown, Context>;
    bwfRenewAttempt(...args: ScriptArguments): Result<unknown, Context>;
    bwfSetRunning(...args: ScriptArguments): Result<unknown, Context>;
    bwfEndAttempt(...args: ScriptArguments): Result<unknown, Context>;
    bwfMarkLeaseLost(...args: ScriptArguments): Result<unknown, Context>;
    bwfRequestCancel(...args: ScriptArguments): Result<unknown, Context>;
    bwfFinish(...args: ScriptArguments): Result<unknown, Context>;
    bwfLaneAppend(...args: ScriptArguments): Result<unknown, Context>;
    bwfLaneFinalize(...args: ScriptArguments): Result<unknown, Context>;
    bwfLaneHead(...args: ScriptArguments): Result<unknown, Context>;
    bwfLaneTrim(...args: ScriptArguments): Result<unknown, Context>;
    bwfLaneSweep(...args: ScriptArguments): Result<unknown, Context>;
    bwfLaneForget(...args: ScriptArguments): Result<unknown, Context>;
    bwfLanePark(...args: ScriptArguments): Result<unknown, Context>;
  }
}

/** How many keys each script takes; its file is the name with a small first letter. */
const NUMBER_OF_KEYS = {
  RecordClaim: 4,
  StartAttempt: 4,
  RenewAttempt: 5,
  SetRunning: 1,
  EndAttempt: 2,
  MarkLeaseLost: 4,
  RequestCancel: 1,
  Finish: 5,
  LaneAppend: 4,
  LaneFinalize: 5,
  LaneHead: 1,
  LaneTrim: 3,
  LaneSweep: 1,
  LaneForget: 3,
  LanePark: 4,
} as const;

/** Makes the scripts known to a connection. */
export function defineScripts(redis: Redis): void {
  for (const [name, numberOfKeys] of Object.entries(NUMBER_OF_KEYS)) {
    const file = new URL(`lua/${name.charAt(0).toLowerCase()}${name.slice(1)}.lua`, import.meta.url);
    redis.defineCommand(`bwf${name}`, { numberOfKeys, lua: readFileSync(file, 'utf8') });
  }
}
