// How long records may stay. Everything that is written for a run ends by itself, so that nothing leaks when whoever
// should have removed it is gone for good.

const HOUR_MS = 3_600_000;

/** A live claim's record and credential, counted from their last write; every renewal is one. */
export const CLAIM_TTL_MS = 7 * 24 * HOUR_MS;
/** The tombstone of a finished run: recognises late words of old attempts, and answers `explain`. */
export const TOMBSTONE_TTL_MS = 24 * HOUR_MS;
/** What a claim leaves whose lease was lost: long enough to ship its rows, or for the run to come back. */
export const LEFTOVER_TTL_MS = 24 * HOUR_MS;
/** How many starts and ends of attempts a record keeps. */
export const KEPT_ATTEMPTS = 10;
/** Evidence of an attempt's end is for a person; more than this is a log (P7). */
export const EVIDENCE_CHARACTERS = 4_000;
/** Rows that the platform refused stay long enough for somebody to come and look. */
export const DEAD_LETTER_TTL_MS = 30 * 24 * HOUR_MS;
