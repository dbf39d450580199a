// The world of one poller test: a private Redis with a fleet on it, and a pool API that the test scripts call by call.
// The scripted server exists because most of what is proven here is how the poller takes answers that an honest
// control plane doesn't give.
import type { ServerResponse } from 'node:http';
import { PlatformHttp } from '../../../src/platform/http.js';
import { PoolClient } from '../../../src/platform/poolClient.js';
import { type Fleet, openFleet } from '../../../src/queue/fleet.js';
import { generateFleetKey, parseFleetKeys } from '../../../src/queue/seal.js';
import type { Identity } from '../../../src/poller/identity.js';
import { Lines } from '../../support/lines.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';
import { sendJson, type Seen, startTestServer, type TestServer } from '../../unit/platform/testServer.js';

export const POOL = 'lab';

export type Endpoint = 'poll' | 'claim' | 'heartbeat';
export type Answerer = (response: ServerResponse, body: Record<string, unknown>, nth: number) => void;

/** A pool API whose answers are the test's; unscripted polls are held, claims succeed, heartbeats renew for 300 s. */
export class PoolApi {
  readonly seen: Record<Endpoint, Seen[]> = { poll: [], claim: [], heartbeat: [] };
  leaseMs = 300_000;
  readonly #answers = new Map<Endpoint, Answerer>();
  #server: TestServer | undefined;
  #wake: () => void = () => undefined;

  async start(): Promise<void> {
    this.#server = await startTestServer((response, seen) => this.#answer(response, seen));
  }

  get url(): string {
    return this.#server?.url ?? '';
  }

  on(endpoint: Endpoint, answerer: Answerer): void {
    this.#answers.set(endpoint, answerer);
  }

  /** Waits until an endpoint was asked at least `count` times. */
  async asked(endpoint: Endpoint, count: number): Promise<void> {
    while (this.seen[endpoint].length < count) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  /** What the answer to a claim says unless a test wants it otherwise. */
  claimBody(assignmentId: string, more: Record<string, unknown> = {}): Record<string, unknown> {
    const id = assignmentId.replace(/^asg_/, '');
    return {
      lease_id: `lse_${id}`,
      run_id: `run_${id}`,
      workflow_id: 'wf_1',
      environment_id: null,
      workspace_key: null,
      lease_expires_at: Date.now() + this.leaseMs,
      control_plane: { base_url: this.url, run_token: `rt_secret_${id}`, api_token: `at_secret_${id}` },
      env: { VISIBLE_ONLY_SEALED: 'env_secret' },
      byo_providers: [],
      ...more,
    };
  }

  async close(): Promise<void> {
    await this.#server?.close();
  }

  #answer(response: ServerResponse, seen: Seen): void {
    const endpoint: Endpoint = seen.path.endsWith('/claim')
      ? 'claim'
      : seen.path.endsWith('poll')
        ? 'poll'
        : 'heartbeat';
    this.seen[endpoint].push(seen);
    const body = JSON.parse(seen.body) as Record<string, unknown>;
    const nth = this.seen[endpoint].length;
    const scripted = this.#answers.get(endpoint);
    if (scripted !== undefined) scripted(response, body, nth);
    else if (endpoint === 'claim') sendJson(response, 200, this.claimBody(assignmentOf(seen)));
    else if (endpoint === 'heartbeat') {
      sendJson(response, 200, { lease_expires_at: Date.now() + this.leaseMs, action: 'continue' });
    }
    this.#wake();
  }
}

export function assignmentOf(seen: Seen): string {
  return decodeURIComponent(seen.path.split('/').at(-2) ?? '');
}

/** An offer as `protocol/pool.md` 5 has it. */
export function offer(id: string | number, more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    assignment_id: `asg_${id}`,
    run_id: `run_${id}`,
    org_id: 'org_1',
    runs_on: { kind: 'self-hosted', pool: POOL },
    queued_at: 1,
    ...more,
  };
}

export interface World {
  readonly redis: TestRedis;
  readonly fleet: Fleet;
  readonly api: PoolApi;
  readonly client: PoolClient;
  readonly identity: Identity;
  readonly lines: Lines;
  /** Says that an executor of the pool is there. */
  putExecutor(slots: number, state?: 'ready' | 'draining'): Promise<void>;
  close(): Promise<void>;
}

export async function openWorld(): Promise<World> {
  const redis = await startTestRedis({ appendonly: true });
  const lines = new Lines();
  const keys = parseFleetKeys(generateFleetKey());
  const fleet = await openFleet({ name: 'test', redis: redis.settings, keys, log: lines.log });
  const api = new PoolApi();
  await api.start();
  const http = new PlatformHttp({ userAgent: 'test', random: () => 0 });
  const identity: Identity = {
    runnerId: 'rnr_1',
    runnerToken: 'bwkr_secret',
    controlPlaneUrl: api.url,
    pool: POOL,
    name: 'box',
    createdAtMs: 1,
  };
  return {
    redis,
    fleet,
    api,
    client: new PoolClient(http, { controlPlaneUrl: api.url, runnerToken: identity.runnerToken }),
    identity,
    lines,
    putExecutor: (slots, state = 'ready') =>
      fleet.executors.put(
        {
          id: 'exe_1',
          host: 'h',
          bootId: null,
          pool: POOL,
          labels: [],
          slots,
          busy: 0,
          version: '0',
          state,
          sandbox: 'process',
          startedAtMs: 1,
          atMs: 1,
        },
        600_000,
      ),
    close: async () => {
      await http.close();
      await api.close();
      await fleet.close();
      await redis.stop();
    },
  };
}
