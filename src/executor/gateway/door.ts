// The routes of one run: all that its sandbox can talk to (design section 7). It guards the real run token, which
// never goes inside, and the fence: no call is dispatched and no answer written once the attempt has lost its run.
// How a call is answered lives in the file of that call.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { StopReason } from '../../contract/fleetCalls.js';
import { redact } from '../../redaction/redact.js';
import { pause } from '../../waiting/waiting.js';
import { CallEnded, fenced, Refusal, sendRefusal } from './answers.js';
import { BodyBudget, jsonOf, withBody } from './body.js';
import { Call, type CallEnd, type Pause, Turns } from './calls.js';
import { DEFAULT_DOOR_LIMITS, type DoorDependencies, type DoorLimits } from './doorDependencies.js';
import { Finalize, type LaneFinalize } from './finalize.js';
import { relayInference } from './inference.js';
import { cancelAnswer, claimAnswer, creditAnswer, renewAnswer } from './leaseAnswers.js';
import { LaneWriter } from './laneWriter.js';
import { forwardedHeaders, relay, type RelayDependencies, relaySecret } from './relay.js';
import { type RoutedCall, routeOf } from './routes.js';
import type { DoorHandler } from './server.js';
import { Telemetry } from './telemetry.js';
import { Version } from './version.js';
import { Watch } from './watch.js';

/** The platform pings at least every 10 s (protocol/inference.md 2); a stream that says nothing is half-open (P25). */
const MODEL_SILENCE_MS = 120_000;

export class Door implements DoorHandler {
  readonly runId: string;
  /** Resolves when the lane holds the run's finalize; stays open when none comes. */
  readonly finalized: Promise<LaneFinalize>;
  readonly #deps: DoorDependencies;
  readonly #limits: DoorLimits;
  readonly #calls = new Set<Call>();
  readonly #budget: BodyBudget;
  readonly #lane: LaneWriter;
  /**
   * Rows and finalize in the order in which their calls began, also when a runtime sends several at once: a batch that
   * came in behind a later one would be taken for a repeat, and lost.
   */
  readonly #inOrder = new Turns();
  readonly #telemetry: Telemetry;
  readonly #finalize: Finalize;
  readonly #watch: Watch;
  readonly #version: Version;
  readonly #relay: RelayDependencies;
  readonly #streams: { readonly pause: Pause; readonly random: () => number };
  readonly #onFence = (): void => this.#endAll('fenced');
  #closed = false;

  constructor(deps: DoorDependencies) {
    this.runId = deps.runId;
    this.#deps = deps;
    this.#limits = { ...DEFAULT_DOOR_LIMITS, ...deps.limits };
    this.#budget = new BodyBudget(this.#limits.bodiesBytes);
    const mayAct = (): boolean => this.#mayAct();
    this.#lane = new LaneWriter({ ...deps, signal: deps.fence.signal, mayAct });
    this.#telemetry = new Telemetry({
      ...deps,
      lane: this.#lane,
      rules: { ...this.#limits, runId: deps.runId, aboveCursor: deps.runClaim.lastEventCursor },
    });
    this.#finalize = new Finalize({ lane: this.#lane, secrets: deps.secrets });
    this.finalized = this.#finalize.done;
    this.#watch = new Watch({ ttlMs: deps.watchTtlMs, mayAct });
    this.#relay = { runClient: deps.runClient, deadlineMs: this.#limits.callMs, onSecret: deps.onSecret };
    this.#streams = { pause: deps.pause ?? pause, random: Math.random };
    this.#version = new Version({
      runId: deps.runId,
      relay: this.#relay,
      program: { ...this.#streams, http: deps.http },
    });
    deps.fence.signal.addEventListener('abort', this.#onFence, { once: true });
  }

  /** The finalize that the lane holds, once there is one. */
  get finalizedBody(): LaneFinalize | undefined {
    return this.#finalize.body;
  }

  async handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const call = new Call(req, res, () => this.#mayAct());
    this.#calls.add(call);
    try {
      if (this.#closed) call.end('closed');
      call.throwIfEnded();
      await this.#dispatch(call, routeOf(this.runId, req.method, req.url));
    } catch (error) {
      this.#conclude(call, error);
    } finally {
      this.#calls.delete(call);
      call.release();
    }
  }

  /** The run is to stop: told on every watch and in the answers of cancel and credit. The first reason stays. */
  stop(reason: StopReason): void {
    this.#watch.stop(reason);
  }

  /** Takes no call any more and ends those in progress; what the lane was already asked to write is still written. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#deps.fence.signal.removeEventListener('abort', this.#onFence);
    this.#endAll('closed');
  }

  /** After {@link close}: resolves when every write that was begun is in the lane, or the fence has fallen. */
  async settled(): Promise<void> {
    await this.#lane.settled();
  }

  async #dispatch(call: Call, route: RoutedCall): Promise<void> {
    switch (route.kind) {
      case 'claim':
        return this.#answered(call, 201, () => claimAnswer(this.#deps.runClaim, this.#deps.leaseUntilMs()));
      case 'renew':
        return this.#answered(call, 200, () => renewAnswer(this.#deps.leaseUntilMs()));
      case 'cancel':
        return this.#answered(call, 200, () => cancelAnswer(this.#watch.stopReason));
      case 'credit':
        return this.#answered(call, 200, () => creditAnswer(this.#watch.stopReason));
      case 'watch':
        return this.#watch.serve(call);
      case 'version':
        return this.#version.answer(call, route);
      case 'program':
        return this.#version.program(call);
      case 'telemetry':
        return this.#inOrder.take(() => this.#accept(call, (json) => this.#telemetry.accept(json)));
      case 'finalize':
        return this.#inOrder.take(() => this.#accept(call, (json) => this.#finalize.accept(json)));
      case 'secret':
        return this.#withBody(call, (body) => relaySecret(call, route, body, this.#relay));
      case 'inference':
        return this.#inference(call, route);
      case 'relay':
        if (route.method === 'GET') return relay(call, route, undefined, this.#relay);
        return this.#withBody(call, (body) => relay(call, route, body, this.#relay));
    }
  }

  /** Without asking the platform. */
  async #answered(call: Call, status: number, answer: () => unknown): Promise<void> {
    await this.#withBody(call, () => {
      call.json(status, answer());
      return Promise.resolve();
    });
  }

  async #accept(call: Call, take: (json: unknown) => Promise<void>): Promise<void> {
    await this.#withBody(call, async (body) => {
      await take(jsonOf(body));
      call.answer(204, new Uint8Array(0));
    });
  }

  async #inference(call: Call, route: RoutedCall): Promise<void> {
    await this.#withBody(
      call,
      (body) =>
        relayInference(call, {
          ...this.#streams,
          open: async (signal) => {
            const answer = await this.#deps.runClient.forwardStream({
              method: route.method,
              suffix: route.suffix,
              body,
              headers: { ...forwardedHeaders(call, body), accept: 'application/x-ndjson' },
              idleTimeoutMs: MODEL_SILENCE_MS,
              signal,
            });
            if (answer.outcome === 'failed') throw answer.error;
            return answer;
          },
        }),
      this.#limits.inferenceBytes,
    );
  }

  async #withBody(
    call: Call,
    use: (body: Buffer) => Promise<void>,
    limitBytes: number = this.#limits.bodyBytes,
  ): Promise<void> {
    await withBody(call.req, { limitBytes, budget: this.#budget, signal: call.signal }, async (body) => {
      // A frozen process has no timers: what came in meanwhile must not be dispatched on waking up.
      call.throwIfEnded();
      await use(body);
    });
  }

  #mayAct(): boolean {
    if (this.#deps.fence.check()) return true;
    this.#endAll('fenced');
    return false;
  }

  #endAll(reason: CallEnd): void {
    for (const call of this.#calls) call.end(reason);
  }

  /** A call that did not get its answer gets a refusal where that can still be said, else a cut connection. */
  #conclude(call: Call, error: unknown): void {
    if (call.ended === 'fenced') this.#refuse(call, fenced());
    else if (call.ended !== undefined || error instanceof CallEnded) call.res.destroy();
    else if (error instanceof Refusal) this.#refuse(call, error);
    else {
      this.#deps.log.error(
        { runId: this.runId, ...this.#described(error) },
        'gateway: a call failed unexpectedly',
      );
      this.#refuse(call, new Refusal(500, 'INTERNAL_ERROR', 'The gateway failed on this call.'));
    }
  }

  #refuse(call: Call, refusal: Refusal): void {
    if (call.res.headersSent) call.res.destroy();
    else sendRefusal(call.res, refusal);
  }

  /** An unexpected error may quote what it failed on. */
  #described(error: unknown): { readonly errorName: string; readonly stack?: string } {
    if (!(error instanceof Error)) return { errorName: typeof error };
    return { errorName: error.name, stack: redact(error.stack ?? '', this.#deps.secrets) };
  }
}
