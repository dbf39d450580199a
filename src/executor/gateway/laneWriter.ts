// The one writer of a run's lane. It guards order and loss: writes go one after the other, so rows can't overtake
// each other nor a finalize its rows, and a write waits through an outage of Redis instead of dropping what it
// carries (P8). Repeating a write is safe, because the lane knows cursors and compares the attempt token.

import type { Logger } from 'pino';
import { RecordError, SealError } from '../../queue/errors.js';
import type { AppendOutcome, LaneRow, Lanes } from '../../queue/lane.js';
import { pause } from '../../waiting/waiting.js';
import { CallEnded } from './answers.js';
import { Turns, unlessEnded } from './calls.js';

/** Between tries while Redis fails: short enough to meet its return, long enough not to press on it. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
/** Rows of one script call: a long script would hold up every other run's commands. */
const ROWS_PER_WRITE = 1_000;

export interface LaneWriterDependencies {
  readonly runId: string;
  readonly attemptToken: string;
  readonly lanes: Pick<Lanes, 'append' | 'appendFinalize'>;
  readonly flushes: { add(runId: string): Promise<void> };
  readonly log: Logger;
  /** The fence's: aborted when this attempt may not write any more. */
  readonly signal: AbortSignal;
  /** Asked before every try. */
  readonly mayAct: () => boolean;
}

export class LaneWriter {
  readonly #deps: LaneWriterDependencies;
  readonly #turns = new Turns();

  constructor(deps: LaneWriterDependencies) {
    this.#deps = deps;
  }

  /**
   * Appends rows with rising cursors. Resolves only when Redis has all of them.
   *
   * @throws CallEnded when the attempt may not write any more.
   */
  async rows(rows: readonly LaneRow[]): Promise<AppendOutcome['outcome']> {
    return this.#inTurn(async () => {
      for (let from = 0; from < rows.length; from += ROWS_PER_WRITE) {
        const part = rows.slice(from, from + ROWS_PER_WRITE);
        const answer = await this.#persist(() => this.#append(part));
        if (answer.outcome !== 'appended') return answer.outcome;
      }
      return 'appended';
    });
  }

  /** Appends the finalize as the lane's last entry. A repeated one is a success. */
  async finalize(body: string): Promise<'appended' | 'repeated' | 'foreign_attempt'> {
    return this.#inTurn(async () => {
      const { runId, attemptToken, lanes } = this.#deps;
      const answer = await this.#persist(() => lanes.appendFinalize(runId, attemptToken, body));
      if (answer.outcome !== 'foreign_attempt' && answer.needsFlush) this.#flush();
      return answer.outcome;
    });
  }

  async #append(rows: readonly LaneRow[]): Promise<AppendOutcome> {
    const answer = await this.#deps.lanes.append(this.#deps.runId, this.#deps.attemptToken, rows);
    if (answer.outcome === 'appended' && answer.needsFlush) this.#flush();
    return answer;
  }

  /** Resolves when no write is in hand any more, or the attempt has lost its lane. */
  async settled(): Promise<void> {
    await unlessEnded(this.#turns.idle(), this.#deps.signal).catch(() => undefined);
  }

  /** Not awaited: the rows are safe, and a flush job that could not be added is made up for by the shipper's sweep. */
  #flush(): void {
    const { runId, flushes, log } = this.#deps;
    flushes.add(runId).catch((err: unknown) => {
      log.warn({ runId, reason: reasonOf(err) }, 'gateway: the flush job could not be added; the sweep will');
    });
  }

  /** A write that Redis still has in hand keeps its turn, also when its caller has stopped waiting for it. */
  async #inTurn<T>(write: () => Promise<T>): Promise<T> {
    return unlessEnded(this.#turns.take(write), this.#deps.signal);
  }

  async #persist<T>(write: () => Promise<T>): Promise<T> {
    const { runId, log, signal, mayAct } = this.#deps;
    for (let failures = 0; ; failures += 1) {
      if (signal.aborted || !mayAct()) throw new CallEnded('fenced');
      try {
        const answer = await write();
        if (failures > 0) log.info({ runId, failures }, 'gateway: the lane takes rows again');
        return answer;
      } catch (err) {
        if (!mayPass(err)) throw err;
        if (failures === 0) {
          log.warn({ runId, reason: reasonOf(err) }, 'gateway: the lane could not be written; trying on');
        }
        await pause(pauseAfter(failures), signal);
      }
    }
  }
}

/** Ours, and the same at every try; everything else is Redis, which comes back (P8). */
function mayPass(err: unknown): boolean {
  return !(
    err instanceof TypeError ||
    err instanceof RangeError ||
    err instanceof SealError ||
    err instanceof RecordError
  );
}

/** The error itself stays out of the log: the Redis client hangs the command on it, with rows and token. */
function reasonOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}

function pauseAfter(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10));
}
