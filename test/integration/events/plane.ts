// The receiving end of a shipper test: telemetry, finalize and the run claim over real HTTP, with trouble on request.
// It exists because what is proven here is how answers are taken that an honest control plane doesn't give. It notes
// what no shipper may do: two calls of a run at a time, a cursor that goes back, anything after an accepted finalize.

import type { ServerResponse } from 'node:http';
import { sendJson, startTestServer, type Seen, type TestServer } from '../../unit/platform/testServer.js';

export type Endpoint = 'telemetry' | 'finalize' | 'claim';

export interface Call {
  readonly endpoint: Endpoint;
  readonly runId: string;
  readonly token: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Cursors of a batch. */
  readonly cursors: readonly number[];
}

export type Trouble =
  | { readonly status: number; readonly headers?: Record<string, string> }
  /** Takes what was sent, then cuts the connection instead of answering. */
  | 'store_then_cut'
  | 'cut';

/** `undefined`: none. A promise holds the answer back. */
export type Answering = Trouble | undefined | Promise<Trouble | undefined>;

export interface Finalized {
  readonly status: unknown;
  readonly output: unknown;
  readonly workerId: unknown;
  readonly token: string;
}

export class Plane {
  readonly calls: Call[] = [];
  /** First writes, by run, in the order in which they came. */
  readonly rows = new Map<string, number[]>();
  readonly finalized = new Map<string, Finalized>();
  readonly wrongs: string[] = [];
  /** Calls whose sender hung up before they were answered. */
  brokenOff = 0;
  readonly #inFlight = new Set<string>();
  #trouble: (call: Call) => Answering = () => undefined;
  #server: TestServer | undefined;
  #wake: (() => void)[] = [];

  async start(): Promise<void> {
    this.#server = await startTestServer((response, seen) => void this.#handle(response, seen));
  }

  get url(): string {
    return this.#server?.url ?? '';
  }

  /** What happens to calls from now on; `undefined` from it means nothing does. */
  on(trouble: (call: Call) => Answering): void {
    this.#trouble = trouble;
  }

  /** Waits for a state of what has been received; looked at after every call. */
  async until(reached: (plane: this) => boolean): Promise<void> {
    while (!reached(this)) await new Promise<void>((resolve) => this.#wake.push(resolve));
  }

  callsTo(endpoint: Endpoint, runId?: string): readonly Call[] {
    return this.calls.filter(
      (call) => call.endpoint === endpoint && (runId === undefined || call.runId === runId),
    );
  }

  async stop(): Promise<void> {
    await this.#server?.close();
  }

  async #handle(response: ServerResponse, seen: Seen): Promise<void> {
    const [, runId = '', endpoint = ''] = /^\/runner\/v1\/runs\/([^/]+)\/(\w+)$/.exec(seen.path) ?? [];
    const body = JSON.parse(seen.body) as Record<string, unknown>;
    const frames = (body['frames'] ?? []) as string[];
    const call: Call = {
      endpoint: endpoint as Endpoint,
      runId,
      token: (seen.headers.authorization ?? '').replace('Bearer ', ''),
      body,
      cursors: frames.map((frame) => (JSON.parse(frame) as { cursor: number }).cursor),
    };
    // A call whose connection is gone is in flight no more, whatever becomes of its answer.
    if (this.#inFlight.has(runId)) this.wrongs.push(`${runId}: two calls at a time`);
    this.#inFlight.add(runId);
    let answered = false;
    response.once('close', () => {
      this.#inFlight.delete(runId);
      if (!answered) this.brokenOff += 1;
      this.#notify();
    });
    this.calls.push(call);
    const answering = this.#trouble(call);
    this.#notify();
    const trouble = await answering;
    answered = true;

    if (trouble === undefined || trouble === 'store_then_cut') this.#store(call);
    if (trouble === undefined) {
      this.#inFlight.delete(runId);
      if (endpoint === 'claim') sendJson(response, 201, { run: RUN_ROW, lastEventCursor: 0 });
      else response.writeHead(204).end();
    } else if (typeof trouble === 'string') {
      response.destroy();
    } else {
      this.#inFlight.delete(runId);
      const error = { code: 'TROUBLE', message: 'as the test wants it' };
      sendJson(response, trouble.status, { error }, trouble.headers);
    }
    this.#notify();
  }

  #store({ endpoint, runId, cursors, body, token }: Call): void {
    if (endpoint === 'telemetry') {
      if (this.finalized.has(runId)) this.wrongs.push(`${runId}: rows after its finalize`);
      const rows = this.rows.get(runId) ?? [];
      this.rows.set(runId, rows);
      for (const cursor of cursors) {
        if (rows.includes(cursor)) continue;
        if (cursor < (rows.at(-1) ?? 0)) this.wrongs.push(`${runId}: ${cursor} came after ${rows.at(-1)}`);
        rows.push(cursor);
      }
    }
    if (endpoint === 'finalize') {
      const { status, output, workerId } = body;
      const first = this.finalized.get(runId);
      if (first === undefined) this.finalized.set(runId, { status, output, workerId, token });
      else if (first.status !== status) this.wrongs.push(`${runId}: finalized twice`);
    }
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}

const RUN_ROW = {
  id: 'run',
  orgId: 'org',
  workflowId: 'wf_1',
  workflowVersionId: 'wfv_1',
  environmentId: null,
  actor: { type: 'user', id: 'u' },
  triggerKind: 'manual',
  input: null,
  createdAt: 1_700_000_000_000,
};
