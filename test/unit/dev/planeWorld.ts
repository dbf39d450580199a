// A control plane of a test's own, and the parties that talk to it over real HTTP.

import { onTestFinished } from 'vitest';
import {
  claimResponseSchema,
  pollResponseSchema,
  type ClaimResponse,
  type Offer,
} from '../../../src/contract/pool.js';
import {
  type ArchiveSpec,
  ControlPlane,
  type ControlPlaneOptions,
  type Report,
  type RunView,
  type SourceSpec,
  type StoredRow,
} from '../../../src/dev/controlPlane/controlPlane.js';

export const DECLARATION = { contract_version: 1, runner_version: '1.0.0' };
export const NOOP = 'export default () => null;';

export interface Reply {
  readonly status: number;
  readonly body: unknown;
}

export class PlaneWorld {
  readonly plane: ControlPlane;
  url = '';
  registrationToken = '';
  adminToken = '';

  constructor(options: ControlPlaneOptions) {
    this.plane = new ControlPlane(options);
  }

  async call(
    method: string,
    path: string,
    options: { readonly bearer?: string; readonly body?: unknown; readonly signal?: AbortSignal } = {},
  ): Promise<Reply> {
    const { bearer, body, signal } = options;
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        'content-type': 'application/json',
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : (JSON.parse(text) as unknown) };
  }

  admin(method: string, path: string, body?: unknown): Promise<Reply> {
    return this.call(method, `/dev/v1/${path}`, {
      bearer: this.adminToken,
      ...(body === undefined ? {} : { body }),
    });
  }

  async report(): Promise<Report> {
    return (await this.admin('GET', 'report')).body as Report;
  }

  async view(runId: string): Promise<RunView> {
    return (await this.admin('GET', `runs/${runId}`)).body as RunView;
  }

  async rows(runId: string): Promise<readonly StoredRow[]> {
    return ((await this.admin('GET', `runs/${runId}/events`)).body as { rows: StoredRow[] }).rows;
  }

  async runner(
    options: { readonly labels?: readonly string[]; readonly pool?: string } = {},
  ): Promise<TestRunner> {
    const { pool, labels = [] } = options;
    const token = await this.admin('POST', 'tokens', pool === undefined ? {} : { pool });
    const { registration_token } = token.body as { registration_token: string };
    const body = { registration_token, name: 'test', labels };
    const registered = await this.call('POST', '/runner/v1/register', { body });
    return new TestRunner(this, (registered.body as { runner_token: string }).runner_token);
  }

  /** A run that a runner has claimed and a worker too. */
  async work(spec: Partial<SourceSpec> | ArchiveSpec = {}): Promise<TestWork> {
    this.plane.createRuns('archive' in spec ? spec : { source: NOOP, ...spec });
    const runner = await this.runner();
    const work = await runner.take();
    await work.claim();
    return work;
  }
}

export class TestRunner {
  constructor(
    readonly world: PlaneWorld,
    readonly token: string,
  ) {}

  pool(path: string, body: unknown = DECLARATION, signal?: AbortSignal): Promise<Reply> {
    const options = { bearer: this.token, body, ...(signal === undefined ? {} : { signal }) };
    return this.world.call('POST', `/runner/v1/pool/${path}`, options);
  }

  /** One poll that must bring an offer. */
  async offer(): Promise<Offer> {
    const { assignment } = pollResponseSchema.parse((await this.pool('poll')).body);
    if (assignment === null) throw new Error('The poll brought no offer.');
    return assignment;
  }

  /** Polls and claims. */
  async take(): Promise<TestWork> {
    const { assignment_id } = await this.offer();
    const reply = await this.pool(`assignments/${assignment_id}/claim`);
    return new TestWork(this, claimResponseSchema.parse(reply.body));
  }
}

export class TestWork {
  readonly runId: string;

  constructor(
    readonly runner: TestRunner,
    readonly assignment: ClaimResponse,
    readonly workerId = 'worker-1',
  ) {
    this.runId = assignment.run_id;
  }

  call(method: string, suffix: string, body?: unknown): Promise<Reply> {
    const bearer = this.assignment.control_plane.run_token;
    const path = `/runner/v1/runs/${this.runId}/${suffix}`;
    return this.runner.world.call(method, path, { bearer, ...(body === undefined ? {} : { body }) });
  }

  claim(workerId = this.workerId, leaseSeconds = 300): Promise<Reply> {
    return this.call('POST', 'claim', { workerId, leaseSeconds });
  }

  send(...rows: readonly object[]): Promise<Reply> {
    return this.call('POST', 'telemetry', { frames: rows.map((row) => JSON.stringify(row)) });
  }

  finalize(status: 'completed' | 'failed', output: unknown, workerId = this.workerId): Promise<Reply> {
    return this.call('POST', 'finalize', { status, output, workerId });
  }

  beat(phase = 'running'): Promise<Reply> {
    const { lease_id, run_id } = this.assignment;
    return this.runner.pool('heartbeat', { lease_id, run_id, phase });
  }

  row(
    cursor: number,
    fields: Readonly<Record<string, unknown>> = { kind: 'phase', name: 'a', id: 'a' },
  ): object {
    const seq = cursor % 1_000_000;
    return { cursor, event: { runId: this.runId, turnId: this.runId, seq, t: 1, ...fields } };
  }
}

/** Stops with the test. */
export async function startPlane(options: ControlPlaneOptions = {}): Promise<PlaneWorld> {
  const world = new PlaneWorld({ pollHoldMs: 5_000, ...options });
  onTestFinished(() => world.plane.stop());
  Object.assign(world, await world.plane.start());
  return world;
}

export function errorOf(reply: Reply): { readonly code: string; readonly message: string } {
  return (reply.body as { error: { code: string; message: string } }).error;
}
