// Drains lanes to the control plane, one batch in flight a run, finalize last.

import type { Logger } from 'pino';
import type { PlatformHttp } from '../platform/http.js';
import { RunClient } from '../platform/runClient.js';
import type { EventsWorker, Fleet, FlushContext, FlushOutcome, LaneEntry } from '../queue/fleet.js';

export interface ShipperOptions {
  readonly fleet: Fleet;
  readonly http: PlatformHttp;
  readonly log: Logger;
  readonly concurrency?: number;
}

export class Shipper {
  readonly #options: ShipperOptions;
  #worker: EventsWorker | undefined;
  #sweep: NodeJS.Timeout | undefined;

  constructor(options: ShipperOptions) {
    this.#options = options;
  }

  start(): void {
    const { fleet, concurrency = 32, log } = this.#options;
    this.#worker = fleet.flushes.worker((runId, context) => this.#drain(runId, context), { concurrency });
    this.#worker.start();
    this.#sweep = setInterval(() => void this.#rearm().catch(() => undefined), 2_000);
    log.info('shipper ready');
  }

  async stop({ deadline }: { readonly deadline: number }): Promise<void> {
    clearInterval(this.#sweep);
    await this.#worker?.stop({ deadline });
  }

  async #rearm(): Promise<void> {
    for (const runId of await this.#options.fleet.lanes.withWork(2_000, 100)) await this.#options.fleet.flushes.add(runId);
  }

  async #drain(runId: string, context: FlushContext): Promise<FlushOutcome> {
    const { fleet, http, log } = this.#options;
    const credential = await fleet.credentials.run(runId);
    if (credential === null) return 'drained';
    const client = new RunClient(http, credential);
    for (;;) {
      if (context.signal.aborted) return 'yield';
      const head: readonly LaneEntry[] = await fleet.lanes.head(runId, { maxRows: 500, maxBytes: 4_000_000 });
      if (head.length === 0) return 'drained';
      const rows = head.filter((entry) => entry.kind === 'row');
      const last = rows.at(-1);
      if (last !== undefined) {
        const answer = await client.telemetry(rows.map((row) => row.frame), { signal: context.signal });
        if (answer.outcome !== 'accepted') return 'retry';
        if ((await fleet.lanes.trim(runId, last.id)).left === 0) return 'drained';
      }
      const finalize = head.find((entry) => entry.kind === 'finalize');
      if (finalize !== undefined) {
        const body = JSON.parse(finalize.body) as { status: 'completed' | 'failed'; output: unknown };
        const answer = await client.finalize({ ...body, workerId: credential.workerId }, { signal: context.signal });
        if (answer.outcome !== 'accepted') {
          log.warn({ answer }, 'finalize not accepted');
          return 'retry';
        }
        await fleet.runStates.finish(runId, credential.leaseId, { status: body.status, answer: 'acknowledged' });
        return 'drained';
      }
    }
  }
}
