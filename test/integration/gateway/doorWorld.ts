// A door as an executor has it: real Redis, a real run with a started attempt, a socket of its own, and a control
// plane that answers what the test tells it to, also badly.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { readRunClaim } from '../../../src/contract/runControl.js';
import { DEFAULT_LOCK_TIMING, Fence, type LockTiming } from '../../../src/executor/fence.js';
import { Door } from '../../../src/executor/gateway/door.js';
import type { DoorDependencies } from '../../../src/executor/gateway/doorDependencies.js';
import { Gateway, type OpenDoor } from '../../../src/executor/gateway/server.js';
import { PlatformHttp } from '../../../src/platform/http.js';
import { RunClient } from '../../../src/platform/runClient.js';
import { openFleet, type Fleet } from '../../../src/queue/fleet.js';
import type { LaneEntry } from '../../../src/queue/lane.js';
import { generateFleetKey, parseFleetKeys } from '../../../src/queue/seal.js';
import { SecretSet } from '../../../src/redaction/secretSet.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';
import { ask, type Answer, type Asked } from '../../unit/gateway/overSocket.js';

export const RUN_TOKEN = 'run-token-of-the-platform';

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export type Respond = (seen: Seen, res: ServerResponse, req: IncomingMessage) => void;

/** A control plane of which each path answers its next response; the last one stays. */
export class Upstream {
  readonly seen: Seen[] = [];
  readonly #server = createServer((req, res) => void this.#serve(req, res));
  readonly #responses = new Map<string, Respond[]>();
  url = '';

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  /** @param suffix the end of the path */
  on(suffix: string, ...responses: Respond[]): void {
    this.#responses.set(suffix, responses);
  }

  calls(suffix: string): Seen[] {
    return this.seen.filter((seen) => seen.path.endsWith(suffix));
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    let body = '';
    req.setEncoding('utf8');
    try {
      for await (const chunk of req) body += String(chunk);
    } catch {
      return;
    }
    const path = (req.url ?? '').split('?')[0] ?? '';
    const seen: Seen = { method: req.method ?? '', path, headers: req.headers, body };
    this.seen.push(seen);
    const suffix = [...this.#responses.keys()].find((known) => path.endsWith(known));
    const responses = suffix === undefined ? undefined : this.#responses.get(suffix);
    const respond = responses !== undefined && responses.length > 1 ? responses.shift() : responses?.[0];
    if (respond === undefined) {
      json(404, { error: { code: 'NOT_FOUND', message: 'no such thing' } })(seen, res, req);
      return;
    }
    respond(seen, res, req);
  }
}

export function json(status: number, value: unknown, headers: Record<string, string> = {}): Respond {
  return (_seen, res) => {
    res.writeHead(status, { 'content-type': 'application/json', ...headers });
    res.end(status === 204 ? undefined : JSON.stringify(value));
  };
}

/** Answers 200, writes the given pieces, and then ends, cuts the connection, or leaves it open. */
export function stream(pieces: readonly string[], end: 'end' | 'drop' | 'hold'): Respond {
  return (_seen, res) => {
    res.writeHead(200, { 'content-type': 'application/x-ndjson' });
    res.flushHeaders();
    for (const piece of pieces) res.write(piece);
    if (end === 'end') res.end();
    // After what was written has left this process.
    if (end === 'drop') setTimeout(() => res.destroy(), 20);
  };
}

export const cut: Respond = (_seen, res) => {
  res.destroy();
};

export interface World {
  readonly runId: string;
  readonly attemptToken: string;
  readonly upstream: Upstream;
  readonly fleet: Fleet;
  readonly door: Door;
  readonly open: OpenDoor;
  readonly fence: Fence;
  readonly secrets: SecretSet;
  /** That reached the door. */
  readonly calls: { count: number };
  readonly running: { count: number };
  readonly flushed: string[];
  /** A call as the runtime makes it: right path, right bearer. */
  call(method: 'GET' | 'POST', suffix: string, body?: unknown, more?: Partial<Asked>): Promise<Answer>;
  path(suffix: string): string;
  lane(): Promise<readonly LaneEntry[]>;
  frame(cursor: number, event?: Record<string, unknown>): string;
}

export interface WorldOptions {
  readonly timing?: LockTiming;
  readonly door?: Partial<DoorDependencies>;
  readonly lastEventCursor?: number;
  /** Wraps what the door writes to. */
  readonly lanes?: (real: DoorDependencies['lanes']) => DoorDependencies['lanes'];
}

/** The services of one test file. Every test opens its own run on them. */
export class Worlds {
  #redis: TestRedis | undefined;
  #fleet: Fleet | undefined;
  #gateway: Gateway | undefined;
  readonly #dir = mkdtempSync(join(tmpdir(), 'gw-'));
  readonly #http = new PlatformHttp({ userAgent: 'test' });
  readonly #upstreams: Upstream[] = [];
  readonly log = pino({ level: 'silent' });

  async start(): Promise<void> {
    this.#redis = await startTestRedis({ appendonly: true });
    this.#fleet = await openFleet({
      name: 'gateway',
      redis: { url: this.#redis.url },
      keys: parseFleetKeys(generateFleetKey()),
      log: this.log,
    });
    this.#gateway = new Gateway({ socketDir: join(this.#dir, 's'), log: this.log });
    await this.#gateway.start();
  }

  get redis(): TestRedis {
    if (this.#redis === undefined) throw new Error('not started');
    return this.#redis;
  }

  async stop(): Promise<void> {
    await this.#gateway?.stop();
    await this.#http.close();
    await Promise.all(this.#upstreams.map((upstream) => upstream.stop()));
    await this.#fleet?.close();
    await this.#redis?.stop();
    rmSync(this.#dir, { recursive: true });
  }

  async open(options: WorldOptions = {}): Promise<World> {
    const fleet = this.#fleet;
    const gateway = this.#gateway;
    if (fleet === undefined || gateway === undefined) throw new Error('not started');
    const upstream = new Upstream();
    this.#upstreams.push(upstream);
    await upstream.start();
    const runId = `run_${randomUUID()}`;
    const attemptToken = await startedAttempt(fleet, runId, upstream.url);
    const fence = new Fence(performance.now(), options.timing ?? DEFAULT_LOCK_TIMING);
    const secrets = new SecretSet();
    const calls = { count: 0 };
    const running = { count: 0 };
    const flushed: string[] = [];
    const door = new Door({
      runId,
      log: this.log,
      lanes: options.lanes?.(fleet.lanes) ?? fleet.lanes,
      flushes: {
        add: (id) => {
          flushed.push(id);
          return Promise.resolve();
        },
      },
      attemptToken,
      runClient: new RunClient(this.#http, { baseUrl: upstream.url, runId, runToken: RUN_TOKEN }),
      http: this.#http,
      fence,
      watchTtlMs: () => fence.remainingMs(),
      runClaim: readRunClaim(claimOf(runId, options.lastEventCursor ?? 0)),
      leaseUntilMs: () => 1_893_456_000_000,
      onSecret: (value) => secrets.add(value),
      secrets,
      onRunning: () => {
        running.count += 1;
      },
      pause: () => Promise.resolve(),
      ...options.door,
    });
    const open = await gateway.openDoor({
      runId,
      handle: (req, res) => {
        calls.count += 1;
        return door.handle(req, res);
      },
      close: () => door.close(),
      settled: () => door.settled(),
    });
    const path = (suffix: string): string => `/runner/v1/runs/${encodeURIComponent(runId)}/${suffix}`;
    return {
      runId,
      attemptToken,
      upstream,
      fleet,
      door,
      open,
      fence,
      secrets,
      calls,
      running,
      flushed,
      path,
      call: (method, suffix, body, more = {}) =>
        ask(open.socketPath, {
          method,
          path: path(suffix),
          bearer: open.bearer,
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          ...more,
        }),
      lane: () => fleet.lanes.head(runId, { maxRows: 10_000, maxBytes: 100_000_000 }),
      frame: (cursor, event = {}) =>
        JSON.stringify({
          cursor,
          event: {
            runId,
            turnId: runId,
            seq: cursor % 1_000_000,
            t: 1,
            kind: 'phase',
            name: 'a',
            id: 'a',
            ...event,
          },
        }),
    };
  }
}

async function startedAttempt(fleet: Fleet, runId: string, controlPlaneUrl: string): Promise<string> {
  const leaseId = `lease_${randomUUID()}`;
  await fleet.runStates.recordClaim({
    v: 1,
    runId,
    assignmentId: `asg_${randomUUID()}`,
    leaseId,
    runnerId: 'rnr_1',
    workflowId: 'wf_1',
    environmentId: null,
    workspaceKey: null,
    pool: 'default',
    controlPlaneUrl,
    baseUrl: controlPlaneUrl,
    runToken: RUN_TOKEN,
    apiToken: 'api-token-of-the-platform',
    workerId: 'rnr_1/asg_1',
    env: {},
    byoProviders: [],
    claimedAtMs: Date.now(),
    leaseExpiresAtMs: Date.now() + 300_000,
  });
  const attemptToken = randomUUID();
  const started = await fleet.runStates.startAttempt({ runId, leaseId, executorId: 'exec_1', attemptToken });
  if (started.outcome !== 'started') throw new Error(`the attempt was not started: ${started.outcome}`);
  return attemptToken;
}

function claimOf(runId: string, lastEventCursor: number): unknown {
  return {
    run: {
      id: runId,
      orgId: 'org_1',
      workflowId: 'wf_1',
      workflowVersionId: 'wfv_1',
      environmentId: null,
      attempt: 2,
      actor: { type: 'user', user_id: 'usr_1' },
      triggerKind: 'manual',
      triggerRequest: null,
      input: { a: 1 },
      triggerPayload: null,
      createdAt: 1_893_456_000_000,
    },
    leaseUntil: 1_893_456_000_000,
    lastEventCursor,
    workflowVersion: 1,
    environment: null,
  };
}
