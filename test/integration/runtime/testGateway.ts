// A gateway for tests of the bundled runtime: the run-control paths over a Unix socket, everything it was told kept in
// order. It answers as the executor's own does, unless a test says otherwise for a path.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { encodeWatchLine, type StopReason } from '../../../src/contract/fleetCalls.js';
import type { RunEvent } from '../../../src/contract/events.js';

export interface StoredRow {
  readonly cursor: number;
  readonly event: RunEvent;
}

export interface Finalize {
  readonly status: string;
  readonly output: unknown;
  readonly workerId: string;
}

export type Answer = (body: unknown, res: ServerResponse, gateway: TestGateway) => void | Promise<void>;

export interface GatewayWorld {
  readonly socketPath: string;
  readonly archive: Buffer;
  readonly entry?: string;
  readonly digest?: string;
  readonly manifest?: Readonly<Record<string, unknown>>;
  readonly run?: Readonly<Record<string, unknown>>;
  readonly lastEventCursor?: number;
  readonly secrets?: Readonly<Record<string, string>>;
  /** One script of inference frames for each call, in order; the last one is used again. */
  readonly models?: readonly (readonly (object | string)[])[];
  /** Answers of a test, by path below the run's. */
  readonly answers?: Readonly<Record<string, Answer>>;
  readonly ttlMs?: number;
}

export const BEARER = 'test-bearer-of-the-gateway';
export const RUN_ID = 'run_test';

export class TestGateway {
  readonly rows: StoredRow[] = [];
  readonly finalizes: Finalize[] = [];
  readonly calls: { readonly method: string; readonly path: string; readonly body: unknown }[] = [];
  readonly #world: GatewayWorld;
  readonly #server: Server;
  readonly #watches = new Set<ServerResponse>();
  readonly #waiting: { readonly wanted: () => boolean; readonly resolve: () => void }[] = [];
  #models = 0;

  constructor(world: GatewayWorld) {
    this.#world = world;
    this.#server = createServer((req, res) => void this.#serve(req, res));
    this.#server.keepAliveTimeout = 0;
  }

  async start(): Promise<void> {
    this.#server.listen(this.#world.socketPath);
    await once(this.#server, 'listening');
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  tellStop(reason: StopReason): void {
    for (const watch of this.#watches) watch.write(encodeWatchLine({ t: 'stop', reason }));
  }

  endWatches(): void {
    for (const watch of this.#watches) watch.end();
    this.#watches.clear();
  }

  /** Resolves as soon as there is a watch. */
  async watched(): Promise<void> {
    await this.until(() => this.#watches.size > 0);
  }

  /** Resolves as soon as a row has arrived that the test waits for. */
  async row(wanted: (event: RunEvent) => boolean): Promise<void> {
    await this.until(() => this.rows.some((row) => wanted(row.event)));
  }

  async until(wanted: () => boolean): Promise<void> {
    if (wanted()) return;
    await new Promise<void>((resolve) => this.#waiting.push({ wanted, resolve }));
  }

  bodiesOf(path: string): readonly unknown[] {
    return this.calls.filter((call) => call.path === path).map((call) => call.body);
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of req as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString('utf8');
    const body: unknown = text === '' ? undefined : JSON.parse(text);
    const path = (req.url ?? '').replace(`/runner/v1/runs/${RUN_ID}/`, '');
    this.calls.push({ method: req.method ?? '', path, body });
    if (req.headers.authorization !== `Bearer ${BEARER}`)
      json(res, 401, { error: { code: 'UNAUTHORIZED', message: '' } });
    else await (this.#world.answers?.[path] ?? this.#answerOf(path))(body, res, this);
    this.#wake();
  }

  #answerOf(path: string): Answer {
    const { archive, secrets = {} } = this.#world;
    switch (path) {
      case 'claim':
        return (_body, res) => json(res, 201, this.#claim());
      case 'version':
        return (_body, res) => json(res, 200, this.#version());
      case '_fleet/program':
        return (_body, res) => void res.writeHead(200).end(archive);
      case '_fleet/watch':
        return (_body, res) => this.#watch(res);
      case 'telemetry':
        return (body, res) => this.take(body, res);
      case 'finalize':
        return (body, res) => {
          this.finalizes.push(body as Finalize);
          res.writeHead(204).end();
        };
      case 'inference':
        return (_body, res) => this.#infer(res);
      case 'secrets/resolve':
        return (body, res) => {
          const { name } = body as { name: string };
          const value = secrets[name];
          if (value === undefined)
            json(res, name.startsWith('DENIED') ? 403 : 404, { error: { code: 'NO', message: 'no' } });
          else json(res, 200, { value });
        };
      case 'usage':
      case 'usage/tokens':
        return (_body, res) => void res.writeHead(204).end();
      default:
        return (_body, res) => json(res, 404, { error: { code: 'NOT_FOUND', message: path } });
    }
  }

  /** Stores a telemetry batch, as the gateway would. */
  take(body: unknown, res: ServerResponse): void {
    const { frames } = body as { frames: string[] };
    this.rows.push(...frames.map((frame) => JSON.parse(frame) as StoredRow));
    res.writeHead(204).end();
  }

  #claim(): object {
    const { run, lastEventCursor = 0 } = this.#world;
    return {
      run: {
        id: RUN_ID,
        orgId: 'org_1',
        workflowId: 'wf_1',
        workflowVersionId: 'wfv_1',
        environmentId: null,
        actor: { type: 'user', user_id: 'usr_1' },
        triggerKind: 'manual',
        input: null,
        createdAt: 1_893_456_000_000,
        ...run,
      },
      lastEventCursor,
      workflowVersion: 3,
      environment: null,
    };
  }

  #version(): object {
    const { archive, entry = 'index.mjs', digest, manifest = {} } = this.#world;
    return {
      manifest: { slug: 'test', triggers: [{ kind: 'manual' }], ...manifest },
      program: {
        entry,
        digest: digest ?? createHash('sha256').update(archive).digest('hex'),
        sdkVersion: '*',
        downloadUrl: `/runner/v1/runs/${RUN_ID}/_fleet/program`,
      },
    };
  }

  #watch(res: ServerResponse): void {
    res.writeHead(200, { 'content-type': 'application/x-ndjson' });
    res.write(encodeWatchLine({ t: 'alive', ttl_ms: this.#world.ttlMs ?? 60_000 }));
    this.#watches.add(res);
    this.#wake();
    res.once('close', () => this.#watches.delete(res));
  }

  #wake(): void {
    for (const waiter of this.#waiting.filter(({ wanted }) => wanted())) waiter.resolve();
  }

  #infer(res: ServerResponse): void {
    const { models = [] } = this.#world;
    const script = models[Math.min(this.#models, models.length - 1)] ?? [];
    this.#models += 1;
    res.writeHead(200, { 'content-type': 'application/x-ndjson' });
    for (const frame of script) {
      if (frame === 'hang') return;
      if (frame === 'drop') {
        res.destroy();
        return;
      }
      res.write(typeof frame === 'string' ? `${frame}\n` : `${JSON.stringify(frame)}\n`);
    }
    res.end();
  }
}

export function json(res: ServerResponse, status: number, value: unknown): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
