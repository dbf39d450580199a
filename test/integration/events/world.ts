// The world of one shipper test: a private Redis with a fleet on it, a control plane that the test scripts, and runs
// whose lanes are filled as the gateway fills them.

import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { Shipper, type ShipperOptions } from '../../../src/events/shipper.js';
import { makeCursor } from '../../../src/contract/cursors.js';
import { PlatformHttp } from '../../../src/platform/http.js';
import { RunClient } from '../../../src/platform/runClient.js';
import type { Fleet, RunCredential, RunPhase, RunRecord } from '../../../src/queue/fleet.js';
import { generateFleetKey, parseFleetKeys } from '../../../src/queue/seal.js';
import { openTestFleet, someClaim } from '../../support/fleet.js';
import { Lines } from '../../support/lines.js';
import type { TestRedis } from '../../support/redis.js';
import { Plane } from './plane.js';

/** A run under a claim, with an attempt that writes. */
export class WrittenRun {
  readonly #fleet: Fleet;
  claim: RunCredential;
  readonly #block: number;
  #token = '';
  #seq = 0;

  /** @param block of its cursors; 0 when nothing is stored for the run before. */
  constructor(fleet: Fleet, claim: RunCredential, block: number) {
    this.#fleet = fleet;
    this.claim = claim;
    this.#block = block;
  }

  get id(): string {
    return this.claim.runId;
  }

  /** A newer claim of the same run, not started yet. */
  async claimAnew(runToken: string): Promise<void> {
    const leaseId = `lse_${randomUUID()}`;
    const leaseExpiresAtMs = this.claim.leaseExpiresAtMs + 1;
    this.claim = { ...this.claim, leaseId, leaseExpiresAtMs, runToken, workerId: `rnr_1/${leaseId}` };
    await this.#fleet.runStates.recordClaim(this.claim);
  }

  /** Takes the run lease at the control plane, as the executor does for its attempt. */
  async holdLease(http: PlatformHttp): Promise<void> {
    const { workerId } = this.claim;
    const claim = await new RunClient(http, this.claim).claim({ workerId, leaseSeconds: 300 });
    if (claim.outcome !== 'claimed') throw new Error(`The run lease was not granted: ${claim.outcome}.`);
  }

  async start(): Promise<string> {
    this.#token = randomUUID();
    const { runId, leaseId } = this.claim;
    const attemptToken = this.#token;
    const started = await this.#fleet.runStates.startAttempt({
      runId,
      leaseId,
      executorId: 'exe_1',
      attemptToken,
    });
    return started.outcome;
  }

  /** Appends the next rows; `text` may be anything. */
  async write(rows: number | readonly string[], options: { readonly flush?: boolean } = {}): Promise<void> {
    const texts = typeof rows === 'number' ? Array.from({ length: rows }, () => 'text') : rows;
    const entries = texts.map((text) => {
      const seq = ++this.#seq;
      const cursor = makeCursor(this.#block, seq);
      const event = {
        runId: this.id,
        turnId: this.id,
        seq,
        t: 1,
        kind: 'program_output',
        stream: 'stdout',
        text,
      };
      return { cursor, frame: JSON.stringify({ cursor, event }) };
    });
    const appended = await this.#fleet.lanes.append(this.id, this.#token, entries);
    if (appended.outcome !== 'appended') throw new Error(`The lane refused rows: ${appended.outcome}.`);
    await this.#fleet.runStates.setRunning(this.id, this.#token, Date.now());
    if (appended.needsFlush && options.flush !== false) await this.#fleet.flushes.add(this.id);
  }

  async finalize(result: { readonly status: string; readonly output: unknown } = COMPLETED): Promise<void> {
    const appended = await this.#fleet.lanes.appendFinalize(this.id, this.#token, JSON.stringify(result));
    if (appended.outcome === 'foreign_attempt') throw new Error('The lane refused the finalize.');
    if (appended.needsFlush) await this.#fleet.flushes.add(this.id);
  }

  /** Cursors of all rows that were ever written. */
  get cursors(): readonly number[] {
    return Array.from({ length: this.#seq }, (_, index) => makeCursor(this.#block, index + 1));
  }
}

export const COMPLETED = { status: 'completed', output: { answer: 42 } };

/** As the machinery that a test steers is set unless it says otherwise: all waits are short, all order is real. */
export class World {
  readonly redis: TestRedis;
  readonly fleet: Fleet;
  /** The fleet key's text, for a shipper in another process. */
  readonly key: string;
  readonly plane = new Plane();
  readonly lines = new Lines();
  readonly http = new PlatformHttp({ userAgent: 'test' });
  readonly #shippers: Shipper[] = [];

  private constructor(redis: TestRedis, fleet: Fleet, key: string) {
    this.redis = redis;
    this.fleet = fleet;
    this.key = key;
  }

  static async open(redis: TestRedis): Promise<World> {
    await redis.cli('FLUSHALL');
    const key = generateFleetKey();
    const world = new World(redis, await openTestFleet(redis, { keys: parseFleetKeys(key) }), key);
    await world.plane.start();
    return world;
  }

  ship(options: Partial<ShipperOptions> = {}): Shipper {
    const { fleet, http } = this;
    const shipper = new Shipper({ fleet, http, log: this.lines.log, sweepMs: 200, refusalMs: 0, ...options });
    this.#shippers.push(shipper);
    shipper.start();
    return shipper;
  }

  /** A run that was claimed, and started by an attempt of ours. */
  async run(changes: Partial<RunCredential> = {}, block = 0): Promise<WrittenRun> {
    const run = new WrittenRun(this.fleet, someClaim({ baseUrl: this.plane.url, ...changes }), block);
    await this.fleet.runStates.recordClaim(run.claim);
    await run.start();
    return run;
  }

  /** Waits until the run's record says that it is over. */
  async done(runId: string): Promise<RunRecord> {
    await expect.poll(() => this.#phase(runId), { timeout: 50_000, interval: 5 }).toBe('done');
    const record = await this.fleet.runStates.get(runId);
    if (record === null) throw new Error(`Run ${runId} has no record.`);
    return record;
  }

  /** Cursors in the run's lane; `finalize` where that is. */
  async lane(runId: string): Promise<readonly (number | string)[]> {
    const head = await this.fleet.lanes.head(runId, { maxRows: 100_000, maxBytes: 1e9 });
    return head.map((entry) => (entry.kind === 'row' ? entry.cursor : entry.kind));
  }

  /** Rows that were set aside, by cursor. */
  async setAside(runId: string): Promise<ReadonlyMap<number, Readonly<Record<string, unknown>>>> {
    const kept = await this.fleet.redis.hgetall(this.fleet.keys.deadLetters(runId));
    return new Map(
      Object.entries(kept).map(([cursor, text]) => [
        Number(cursor),
        JSON.parse(text) as Record<string, unknown>,
      ]),
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.#shippers.map((shipper) => shipper.stop({ deadline: performance.now() })));
    await this.fleet.close();
    await this.http.close();
    await this.plane.stop();
  }

  async #phase(runId: string): Promise<RunPhase | undefined> {
    return (await this.fleet.runStates.get(runId))?.phase;
  }
}

/** A promise with its handle outside. */
export function gate<T = void>(): { readonly opened: Promise<T>; readonly open: (value: T) => void } {
  let open: (value: T) => void = () => undefined;
  const opened = new Promise<T>((resolve) => (open = resolve));
  return { opened, open: (value) => open(value) };
}
