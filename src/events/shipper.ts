// Ships lanes to the control plane: one worker on the events queue, one lane a job. At most one shipper holds a lane, so
// rows of a run arrive in their order; many runs go at once, so one slow run never holds up another (P50).

import type { Logger } from 'pino';
import type { PlatformHttp } from '../platform/http.js';
import type { EventsWorker, Fleet, FlushContext, FlushOutcome } from '../queue/fleet.js';
import { LanePass } from './lanePass.js';
import { LaneSweep } from './sweep.js';

export interface ShipperOptions {
  readonly fleet: Fleet;
  readonly http: PlatformHttp;
  readonly log: Logger;
  /** Lanes that are shipped at a time. Default 32. */
  readonly concurrency?: number;
  /** Lock of a flush job in ms. Default 30 s: within 1.5 of it another shipper takes a dead one's lane up. */
  readonly lockMs?: number;
  readonly random?: () => number;
}

export interface ShipperCounts {
  readonly shippedRows: number;
  /** Rows set aside, parked or given up; the target is zero. */
  readonly lostRows: number;
}

export class Shipper {
  readonly #options: ShipperOptions;
  readonly #sweep: LaneSweep;
  readonly #worker: EventsWorker;
  readonly #counts = { shippedRows: 0, lostRows: 0 };
  #outage = false;
  #started = false;

  constructor(options: ShipperOptions) {
    const { fleet, log, random, concurrency = 32, lockMs } = options;
    this.#options = options;
    this.#sweep = new LaneSweep(fleet, log, random);
    this.#worker = fleet.flushes.worker((runId, context) => this.#flush(runId, context), {
      concurrency,
      ...(lockMs === undefined ? {} : { lockMs }),
    });
  }

  get counts(): ShipperCounts {
    return { ...this.#counts };
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#worker.start();
    this.#sweep.start();
    this.#options.log.info('shipper ready');
  }

  /**
   * Ends after the batches in flight; lanes with more are left to other shippers.
   *
   * @param options `deadline`: on the clock of `performance.now()`
   */
  async stop(options: { readonly deadline: number }): Promise<void> {
    await this.#sweep.stop();
    await this.#worker.stop(options);
  }

  #flush(runId: string, context: FlushContext): Promise<FlushOutcome> {
    const { fleet, http, log } = this.#options;
    const pass = new LanePass(
      {
        fleet,
        http,
        log,
        now: Date.now,
        onAccepted: (rows) => {
          this.#counts.shippedRows += rows;
          if (this.#outage) this.#endOutage();
        },
        onUnreachable: () => {
          this.#outage = true;
        },
        onLost: (rows) => {
          this.#counts.lostRows += rows;
        },
      },
      runId,
      context,
    );
    return pass.run();
  }

  /** The control plane answers again: no lane waits out a back-off that belongs to the outage. */
  #endOutage(): void {
    this.#outage = false;
    this.#options.fleet.flushes
      .wakeDelayed()
      .catch((error: unknown) => this.#options.log.warn({ err: error }, 'waiting lanes could not be woken'));
  }
}
