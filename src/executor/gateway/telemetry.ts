// Telemetry frames into the run's lane. Answers only when Redis has the rows, and an answer of 204 means that nothing
// of the batch can be lost any more (R7, R17): the sandbox may forget it.

import type { SecretSet } from '../../redaction/secretSet.js';
import { fenced, Refusal } from './answers.js';
import { type FrameRules, readRows } from './frames.js';
import type { LaneWriter } from './laneWriter.js';
import { redactRows } from './rowRedaction.js';

export interface TelemetryDependencies {
  readonly rules: FrameRules;
  readonly secrets: SecretSet;
  readonly lane: LaneWriter;
  /** Called once, after the first rows are in the lane. */
  readonly onRunning: () => void;
}

export class Telemetry {
  readonly #deps: TelemetryDependencies;
  #running = false;

  constructor(deps: TelemetryDependencies) {
    this.#deps = deps;
  }

  /** @throws Refusal 400, 413; 409 after the finalize; 410 when the lane belongs to another attempt */
  async accept(body: unknown): Promise<void> {
    const { rules, secrets, lane } = this.#deps;
    const rows = redactRows(readRows(body, rules), secrets);
    if (rows.length === 0) return;
    const outcome = await lane.rows(rows);
    if (outcome === 'foreign_attempt') throw fenced();
    if (outcome === 'finalized')
      throw new Refusal(409, 'FINALIZED', 'The run is finalized; no row can follow.');
    if (this.#running) return;
    this.#running = true;
    this.#deps.onRunning();
  }
}
