// A run's lane: its rows that have not shipped yet, in cursor order, and last of all its finalize. Entries of a Redis
// stream are named after their cursor, so order is data and not luck, and a repeat is recognised by its number.
// Each append makes sure that somebody will flush (`needsFlush`); the sweep finds what a crash forgot.
// Out of scope here: what is too much for a lane is its appender's to say, what goes wrong in shipping the shipper's.

import type { Redis } from 'ioredis';
import { z } from 'zod';
import { SealError } from './errors.js';
import type { FleetKeys } from './keys.js';
import { CLAIM_TTL_MS, DEAD_LETTER_TTL_MS, LEFTOVER_TTL_MS } from './retention.js';
import type { Sealer } from './seal.js';
import { readStored } from './stored.js';

/** A row on its way: `frame` is the JSON text of design section 9, opaque here. */
export interface LaneRow {
  /** A safe integer >= 1, rising within a lane. */
  readonly cursor: number;
  readonly frame: string;
}

export type LaneEntry =
  | {
      readonly kind: 'row';
      readonly id: string;
      readonly cursor: number;
      readonly frame: string;
      readonly bytes: number;
    }
  /** `body` is the JSON text that was given to {@link Lanes.appendFinalize}. */
  | { readonly kind: 'finalize'; readonly id: string; readonly body: string };

export type AppendOutcome =
  | {
      readonly outcome: 'appended';
      /** Entries that are in the lane now. */
      readonly rows: number;
      /** Bytes of their texts. */
      readonly bytes: number;
      /** The caller must add a flush job for the run. */
      readonly needsFlush: boolean;
    }
  | { readonly outcome: 'foreign_attempt' | 'finalized' };

export type FinalizeOutcome =
  | { readonly outcome: 'appended' | 'repeated'; readonly needsFlush: boolean }
  | { readonly outcome: 'foreign_attempt' };

const appendReply = z.union([
  z.tuple([z.literal('appended'), z.int(), z.int(), z.int()]),
  z.tuple([z.enum(['foreign_attempt', 'finalized'])]),
]);
const finalizeReply = z.union([
  z.tuple([z.enum(['appended', 'repeated']), z.int()]),
  z.tuple([z.literal('foreign_attempt')]),
]);
const parkReply = z.enum(['parked', 'superseded']);
const headReply = z.array(z.tuple([z.string(), z.enum(['frame', 'finalize']), z.string()]));
const ENTRY_ID = /^(\d+)-(\d+)$/;

export class Lanes {
  readonly #redis: Redis;
  readonly #keys: FleetKeys;
  readonly #sealer: Sealer;

  constructor(redis: Redis, keys: FleetKeys, sealer: Sealer) {
    this.#redis = redis;
    this.#keys = keys;
    this.#sealer = sealer;
  }

  /**
   * Appends rows, all or none. Those at or below the lane's highest cursor are a repeat and skipped.
   *
   * @throws RangeError when the cursors don't rise, which no caller may let happen.
   */
  async append(runId: string, attemptToken: string, rows: readonly LaneRow[]): Promise<AppendOutcome> {
    assertRising(rows);
    const keys = this.#keys;
    const reply = await this.#redis.bwfLaneAppend(
      ...[keys.laneState(runId), keys.lane(runId), keys.lanes, keys.run(runId)],
      ...[attemptToken, runId, CLAIM_TTL_MS, LEFTOVER_TTL_MS],
      ...rows.flatMap((row) => [row.cursor, row.frame]),
    );
    const read = readStored(appendReply, reply, 'The answer of laneAppend');
    if (read[0] !== 'appended') return { outcome: read[0] };
    return { outcome: 'appended', rows: read[1], bytes: read[2], needsFlush: read[3] === 1 };
  }

  /**
   * Appends the finalize, sealed; no row can follow. The same attempt may repeat it and is told so.
   *
   * @param body JSON text of the finalize call's body.
   */
  async appendFinalize(runId: string, attemptToken: string, body: string): Promise<FinalizeOutcome> {
    const keys = this.#keys;
    const reply = await this.#redis.bwfLaneFinalize(
      ...[keys.laneState(runId), keys.lane(runId), keys.lanes, keys.run(runId), keys.credential(runId)],
      ...[attemptToken, runId, this.#sealer.seal(finalizeOwner(runId), body), CLAIM_TTL_MS, LEFTOVER_TTL_MS],
    );
    const read = readStored(finalizeReply, reply, 'The answer of laneFinalize');
    if (read[0] === 'foreign_attempt') return { outcome: read[0] };
    return { outcome: read[0], needsFlush: read[1] === 1 };
  }

  /**
   * The lane's first entries, in one round trip. The very first is always among them, however large it is; the
   * finalize comes opened and last.
   *
   * @throws SealError when the finalize alone is left and can't be opened; rows before it come without it.
   */
  async head(
    runId: string,
    bounds: { readonly maxRows: number; readonly maxBytes: number },
  ): Promise<readonly LaneEntry[]> {
    const reply = await this.#redis.bwfLaneHead(this.#keys.lane(runId), bounds.maxRows, bounds.maxBytes);
    const entries: LaneEntry[] = [];
    for (const [id, kind, text] of readStored(headReply, reply, 'The answer of laneHead')) {
      if (kind === 'frame') {
        entries.push({
          kind: 'row',
          id,
          cursor: splitId(id).cursor,
          frame: text,
          bytes: Buffer.byteLength(text),
        });
        continue;
      }
      const body = this.#openFinalize(runId, text, entries.length > 0);
      if (body !== undefined) entries.push({ kind: 'finalize', id, body });
    }
    return entries;
  }

  /**
   * Takes entries off the head, exactly through `throughId`. May be repeated. The finalize is not trimmed by its
   * shipper: `runStates.finish` ends the whole lane, in one step with the run.
   */
  async trim(runId: string, throughId: string): Promise<{ readonly left: number }> {
    const { cursor, part } = splitId(throughId);
    const keys = this.#keys;
    const reply = await this.#redis.bwfLaneTrim(
      ...[keys.laneState(runId), keys.lane(runId), keys.lanes],
      ...[throughId, `${cursor}-${part + 1}`, runId],
    );
    return { left: readStored(z.int(), reply, 'The answer of laneTrim') };
  }

  /** Whether the lane has its finalize: nobody will write to it any more. */
  async isFinalized(runId: string): Promise<boolean> {
    return (await this.#redis.hget(this.#keys.laneState(runId), 'finalized')) === '1';
  }

  /** Runs whose lane has entries, the longest untouched first. Looks only, unlike {@link withWork}. */
  async unshipped(limit: number): Promise<readonly string[]> {
    return this.#redis.zrange(this.#keys.lanes, '0', String(limit - 1));
  }

  /**
   * Runs whose lane has entries and to which nothing has happened for `olderThanMs`, oldest first; being named here
   * counts as something, so that sweeps of many processes share the work. Lanes that ended by themselves are forgotten.
   */
  async withWork(olderThanMs: number, limit: number): Promise<readonly string[]> {
    const keys = this.#keys;
    const reply = await this.#redis.bwfLaneSweep(keys.lanes, olderThanMs, limit);
    const runIds = readStored(z.array(z.string()), reply, 'The answer of laneSweep');
    const gone = await Promise.all(
      runIds.map(async (runId) => {
        if ((await this.#redis.exists(keys.lane(runId))) === 1) return false;
        const forgotten = await this.#redis.bwfLaneForget(
          keys.lane(runId),
          keys.laneState(runId),
          keys.lanes,
          runId,
        );
        return forgotten === 1;
      }),
    );
    return runIds.filter((_, index) => gone[index] === false);
  }

  /**
   * Keeps a row that the platform refuses by itself, with the answer it got, apart from the lane; the caller trims it
   * then. May be repeated.
   */
  async setAside(
    runId: string,
    row: LaneRow,
    answer: { readonly status: number; readonly body: string },
    atMs: number,
  ): Promise<void> {
    const key = this.#keys.deadLetters(runId);
    const letter = JSON.stringify({ v: 1, frame: row.frame, ...answer, atMs });
    await this.#redis.multi().hset(key, row.cursor, letter).pexpire(key, DEAD_LETTER_TTL_MS).exec();
  }

  /**
   * Keeps a lane that can't be shipped with any credential we have, out of everybody's way. `superseded` means that
   * nothing was done: a newer claim of the run has come and may ship it.
   *
   * @param refused `leaseId`: of the claim that may not; null when there was no credential at all.
   */
  async park(
    runId: string,
    refused: { readonly leaseId: string | null; readonly why: string },
    atMs: number,
  ): Promise<'parked' | 'superseded'> {
    const keys = this.#keys;
    const reply = await this.#redis.bwfLanePark(
      ...[keys.laneState(runId), keys.lanes, keys.run(runId), keys.credential(runId)],
      ...[runId, refused.leaseId ?? '', refused.why, atMs],
    );
    return readStored(parkReply, reply, 'The answer of lanePark');
  }

  #openFinalize(runId: string, sealed: string, rowsBefore: boolean): string | undefined {
    try {
      return this.#sealer.open(finalizeOwner(runId), sealed);
    } catch (error) {
      // Rows must not wait for a key that is missing; they ship, and the finalize alone says what is wrong.
      if (error instanceof SealError && rowsBefore) return undefined;
      throw error;
    }
  }
}

function finalizeOwner(runId: string): string {
  return `finalize:${runId}`;
}

function assertRising(rows: readonly LaneRow[]): void {
  let last = 0;
  for (const { cursor } of rows) {
    if (!Number.isSafeInteger(cursor) || cursor <= last)
      throw new RangeError(`Cursor ${cursor} can't follow ${last} in a lane.`);
    last = cursor;
  }
}

function splitId(id: string): { readonly cursor: number; readonly part: number } {
  const [, cursor, part] = ENTRY_ID.exec(id) ?? [];
  if (cursor === undefined || part === undefined)
    throw new RangeError(`${JSON.stringify(id)} is not the id of a lane's entry.`);
  return { cursor: Number(cursor), part: Number(part) };
}
