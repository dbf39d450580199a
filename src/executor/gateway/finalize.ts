// The run's result from inside, as the lane's last entry (design section 6). It guards the order of things: the
// finalize can't overtake a row, because it waits its turn behind every row that the door took before it.

import { isRecord } from '../../contract/json.js';
import { type FinalizeBody, finalizeRequestSchema } from '../../contract/runControl.js';
import { redact } from '../../redaction/redact.js';
import type { SecretSet } from '../../redaction/secretSet.js';
import { fenced, Refusal } from './answers.js';
import type { LaneWriter } from './laneWriter.js';

/** What the lane holds: the worker id is the shipper's to add, from the newest claim. */
export type LaneFinalize = Omit<FinalizeBody, 'workerId'>;

export interface FinalizeDependencies {
  readonly lane: LaneWriter;
  readonly secrets: SecretSet;
}

export class Finalize {
  readonly #deps: FinalizeDependencies;
  #body: LaneFinalize | undefined;
  #resolve: (body: LaneFinalize) => void = () => undefined;
  /** Resolves when the lane holds the finalize; stays open when none comes. */
  readonly done: Promise<LaneFinalize>;

  constructor(deps: FinalizeDependencies) {
    this.#deps = deps;
    this.done = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** The first finalize that the lane took; `undefined` until then. */
  get body(): LaneFinalize | undefined {
    return this.#body;
  }

  /**
   * @throws Refusal 400; 410 when the lane belongs to another attempt
   */
  async accept(json: unknown): Promise<void> {
    const request = finalizeRequestSchema.safeParse(json);
    if (!request.success) {
      const [issue] = request.error.issues;
      const where = issue === undefined || issue.path.length === 0 ? 'the body' : issue.path.join('.');
      throw new Refusal(400, 'VALIDATION_FAILED', `finalize: ${where} is not valid.`);
    }
    const { status, output } = request.data;
    const body: LaneFinalize = {
      status,
      output: status === 'failed' ? withCleanError(output, this.#deps.secrets) : output,
    };
    const outcome = await this.#deps.lane.finalize(JSON.stringify(body));
    if (outcome === 'foreign_attempt') throw fenced();
    // A repeat says the same; what the lane holds is the first.
    this.#body ??= body;
    this.#resolve(this.#body);
  }
}

/** An output goes unchanged, also when it equals a secret (protocol/events.md section 5); an error is for people. */
function withCleanError(output: unknown, secrets: SecretSet): unknown {
  const error = isRecord(output) ? output['error'] : undefined;
  if (!isRecord(output) || !isRecord(error)) return output;
  const clean = Object.entries(error).map(([key, value]) => [
    key,
    (key === 'message' || key === 'hint') && typeof value === 'string' ? redact(value, secrets) : value,
  ]);
  return { ...output, error: Object.fromEntries(clean) as unknown };
}
