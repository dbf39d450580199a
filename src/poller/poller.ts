// Asks the control plane for runs and puts them into the queue: permit, poll, claim, enqueue, beat. Guards against
// claims that no slot waits for, hot loops on answers that come at once (R21), offers taken while draining (R8), and a
// barred runner that looks healthy. It leaves out several polls at a time, several identities and labels.
import { setMaxListeners } from 'node:events';
import type { Logger } from 'pino';
import { OperatorError } from '../contract/operatorError.js';
import type { Offer } from '../contract/pool.js';
import type { Random } from '../platform/backoff.js';
import type { PoolClient } from '../platform/poolClient.js';
import type { Fleet } from '../queue/fleet.js';
import { LONGEST_TIMER_MS, waitFor } from '../waiting/waiting.js';
import { enqueueClaim, type WonClaim } from './enqueue.js';
import { FailureLog } from './failureLog.js';
import type { Identity } from './identity.js';
import { LeaseBeat, type StopOptions } from './leaseBeat.js';
import { Permits } from './permits.js';
import { PollPace } from './pollPace.js';

export interface PollerOptions {
  readonly fleet: Pick<Fleet, 'credentials' | 'runStates' | 'executors' | 'runs'>;
  readonly poolClient: Pick<PoolClient, 'poll' | 'claim' | 'heartbeat'>;
  readonly identity: Identity;
  readonly log: Logger;
  /** Called after the first accepted poll: only then may the runner call itself online. */
  readonly onOnline?: (() => void) | undefined;
  /** Ends polling after one run has been claimed and queued. Default false. */
  readonly once?: boolean | undefined;
  readonly random?: Random | undefined;
}

/** Why polling has ended. */
export type PollerEnd =
  | { readonly reason: 'stopped' }
  /** The control plane asked for it, or `drain` was called. */
  | { readonly reason: 'drain' }
  | { readonly reason: 'once'; readonly runId: string }
  /** Token revoked, or runner or version barred: the process exits 1 with `message` (`protocol/pool.md` 5.1). */
  | { readonly reason: 'refused'; readonly status: 401 | 403; readonly message: string };

/** For the first write to Redis. */
const START_WAIT_MS = 15_000;

/** A permit that is older than this when the offer comes is asked for again. */
const PERMIT_AGE_MS = 250;

export class Poller {
  /** Settles when polling has ended; claims in hand and beats may still go on. */
  readonly ended: Promise<PollerEnd>;
  readonly #options: PollerOptions;
  readonly #random: Random;
  readonly #permits: Permits;
  readonly #beat: LeaseBeat;
  readonly #inHand = new Set<Promise<unknown>>();
  /** Falls when polling is to end. */
  readonly #polling = new AbortController();
  /** Falls when even a claim in hand is to be let go. */
  readonly #claiming = new AbortController();
  readonly #pace: PollPace;
  readonly #failedPolls: FailureLog;
  readonly #failedClaims: FailureLog;
  readonly #settleEnded: (end: PollerEnd | Promise<PollerEnd>) => void;
  #starting: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;
  #deadline = Infinity;
  #end: PollerEnd = { reason: 'stopped' };
  #online = false;
  #claimsSettled = false;
  #giveUpTimer: NodeJS.Timeout | undefined;

  constructor(options: PollerOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#pace = new PollPace(this.#random, this.#polling.signal);
    const { controlPlaneUrl } = options.identity;
    this.#failedPolls = new FailureLog('poll', controlPlaneUrl, options.log);
    this.#failedClaims = new FailureLog('claim', controlPlaneUrl, options.log);
    this.#permits = new Permits({
      fleet: options.fleet,
      pool: options.identity.pool,
      log: options.log,
      inHand: () => this.#inHand.size,
    });
    this.#beat = new LeaseBeat({
      runStates: options.fleet.runStates,
      poolClient: options.poolClient,
      log: options.log,
      onDrain: () => this.drain(),
      random: options.random,
    });
    // Every claim in hand listens to it, and there may be as many as there are slots.
    setMaxListeners(0, this.#claiming.signal);
    let settle: (end: PollerEnd | Promise<PollerEnd>) => void = () => undefined;
    this.ended = new Promise((resolve) => (settle = resolve));
    this.#settleEnded = settle;
  }

  /** Claims of this process whose leases it beats. */
  get leases(): number {
    return this.#beat.size;
  }

  /** Seals the identity into Redis, so that any process may beat its leases, and begins to poll. */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  /** Ends polling at once, a poll under way is aborted; what was claimed is still queued and beaten. */
  drain(): void {
    if (this.#polling.signal.aborted) return;
    this.#end = { reason: 'drain' };
    this.#polling.abort();
  }

  /**
   * Ends polling at once and beats the claims until they are done or the deadline has passed. A second call may bring
   * the deadline forward.
   */
  stop({ deadline }: StopOptions): Promise<void> {
    this.#polling.abort();
    this.#deadline = Math.min(this.#deadline, deadline);
    clearTimeout(this.#giveUpTimer);
    const left = Math.max(0, this.#deadline - performance.now());
    if (left <= LONGEST_TIMER_MS) {
      this.#giveUpTimer = setTimeout(() => this.#claiming.abort(), left);
      this.#giveUpTimer.unref();
    }
    if (this.#claimsSettled) void this.#beat.stop({ deadline: this.#deadline });
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #start(): Promise<void> {
    const { fleet, identity } = this.#options;
    const { runnerId, runnerToken, controlPlaneUrl, pool } = identity;
    const sealed = await waitFor(
      fleet.credentials.putIdentity({ runnerId, runnerToken, controlPlaneUrl, pool }),
      {
        ms: START_WAIT_MS,
        signal: this.#polling.signal,
      },
    );
    if (sealed.outcome === 'timed_out') {
      throw new OperatorError(
        'REDIS_UNREACHABLE',
        'Redis did not take the identity of this runner in time.',
        {
          hint: 'Check that Redis is up and accepts writes.',
        },
      );
    }
    this.#beat.start();
    this.#settleEnded(this.#poll());
  }

  async #stop(): Promise<void> {
    if (this.#starting === undefined) this.#settleEnded(this.#end);
    // A start that failed has told its caller why, and there is nothing to end.
    else await this.#starting.catch(() => this.#settleEnded(this.#end));
    // What went wrong with polling is for whoever awaits `ended`; what was claimed is still looked after.
    await this.ended.catch(() => undefined);
    await Promise.all(this.#inHand);
    this.#claimsSettled = true;
    await this.#beat.stop({ deadline: this.#deadline });
    clearTimeout(this.#giveUpTimer);
  }

  async #poll(): Promise<PollerEnd> {
    const { poolClient, once } = this.#options;
    const { signal } = this.#polling;
    let failedPolls = 0;
    let failedClaims = 0;
    while (await this.#permits.wait(signal)) {
      const askedAt = performance.now();
      const answer = await poolClient.poll({ signal });
      // Whatever came in the last moment: an offer that is not claimed is offered anew (R8).
      if (signal.aborted) break;
      if (answer.outcome === 'refused') {
        return { reason: 'refused', status: answer.status, message: answer.message };
      }
      if (answer.outcome === 'failed') {
        failedPolls += 1;
        this.#failedPolls.failed(answer.error);
        await this.#pace.failed(failedPolls, answer.retryAfterMs);
        continue;
      }
      failedPolls = 0;
      this.#failedPolls.succeeded();
      this.#sayOnline();
      if (answer.drain) return { reason: 'drain' };
      const taken = answer.outcome === 'offer' ? await this.#take(answer.offer, askedAt) : 'nothing';
      if (taken === 'failed') {
        failedClaims += 1;
        await this.#pace.failed(failedClaims);
      } else if (taken === 'nothing') {
        await this.#pace.idle(askedAt);
      } else {
        failedClaims = 0;
        const queued = this.#putInHand(taken);
        if (once === true && (await queued) === 'enqueued')
          return { reason: 'once', runId: taken.claim.run_id };
      }
    }
    return this.#end;
  }

  /** Claims an offer if there is still room. `nothing`: somebody else has it, or our room is gone. */
  async #take(offer: Offer, askedAt: number): Promise<WonClaim | 'nothing' | 'failed'> {
    const { poolClient, log } = this.#options;
    const isFresh = performance.now() - askedAt < PERMIT_AGE_MS;
    if (!isFresh && ((await this.#permits.free(this.#polling.signal)) ?? 0) <= 0) {
      log.info({ runId: offer.run_id }, 'offer left to others: no slot is free any more');
      return 'nothing';
    }
    // The end of polling doesn't abort a claim: won or not could not be told any more.
    const answer = await poolClient.claim(offer.assignment_id, { signal: this.#claiming.signal });
    switch (answer.outcome) {
      case 'claimed':
        this.#failedClaims.succeeded();
        return {
          assignmentId: offer.assignment_id,
          claim: answer.claim,
          serverDateMs: answer.serverDateMs,
          claimedAtMs: Date.now(),
        };
      case 'lost':
        log.debug({ runId: offer.run_id }, 'offer was claimed by somebody else');
        return 'nothing';
      case 'failed':
        this.#failedClaims.failed(answer.error, { runId: offer.run_id });
        return 'failed';
    }
  }

  /** Queues a won claim while the next poll is under way. */
  #putInHand(won: WonClaim): Promise<'enqueued' | 'let_go'> {
    const queued = this.#enqueue(won).finally(() => this.#inHand.delete(queued));
    this.#inHand.add(queued);
    return queued;
  }

  async #enqueue(won: WonClaim): Promise<'enqueued' | 'let_go'> {
    const { fleet, identity, log } = this.#options;
    const { run_id: runId, lease_id: leaseId, lease_expires_at: leaseExpiresAtMs } = won.claim;
    const signal = this.#claiming.signal;
    try {
      const outcome = await enqueueClaim(won, { fleet, identity, log, random: this.#random, signal });
      if (outcome === 'enqueued') {
        this.#beat.keep({ runId, leaseId, leaseExpiresAtMs, serverDateMs: won.serverDateMs });
      }
      return outcome;
    } catch (error) {
      log.error({ err: error, runId }, 'claim could not be queued: let go');
      return 'let_go';
    }
  }

  #sayOnline(): void {
    if (this.#online) return;
    this.#online = true;
    this.#options.onOnline?.();
  }
}
