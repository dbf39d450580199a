// What our loader tells its host beyond the protocol of programs: console calls, and how the program failed. Bounds are
// here too: they guard the socket between the two. What becomes a row is decided by the host (protocol/events.md 5),
// which redacts before it cuts and therefore takes more than a row does.

/** Longest text of one call that is sent; a row has 8 192 characters. */
export const CONSOLE_TEXT_CHARS = 64 * 1024;
/** A run has 10 000 rows of output; the next one only triggers the notice. */
export const CONSOLE_CALLS = 10_001;
/** The private notification that carries one console call: `{ stream, text, cut }`. */
export const CONSOLE_METHOD = '_fleet/console';
/** The private request with which the loader reports what the program threw: `{ name, code, message, hint }`. */
export const FAILED_METHOD = '_fleet/failed';
