// Figures that every party to the wire goes by when it calls the control plane (protocol/run-control.md 1, 4.1). In one
// place, so that the gateway doesn't try again what the platform's client gives up, and no lease is asked for shorter by
// one owner than by the next. Jitter and waiting are the caller's (`platform/backoff.ts`).

/** Pauses before the second to fifth attempt; a sixth is not made. */
export const RETRY_DELAYS_MS: readonly number[] = [500, 2_000, 5_000, 10_000];

/** Answers after which a call is made again. Of inference there are fewer (`inferenceCall.ts`). */
export const RETRIED_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);

/** Of a run lease: what the reference asks for, and the most that an answer is believed to grant. */
export const RUN_LEASE_SECONDS = 300;
