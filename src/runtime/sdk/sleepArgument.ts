// What an author may give to `sleep`, and its wire form (protocol/sdk.md 1.2). Mistakes are told before anything is
// sent, so that a typo doesn't become a wait of no length.

export type SleepArgument =
  number | string | { readonly durationMs: number } | { readonly until: string | Date };
export type WireSleep = number | { readonly durationMs: number } | { readonly until: unknown };

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DURATION = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*$/i;

/** Milliseconds of a text like `90s`, `1.5h`, `7 d`; `null` when it is none. */
export function parseDuration(text: string): number | null {
  const [, amount, unit] = DURATION.exec(text) ?? [];
  if (amount === undefined || unit === undefined) return null;
  return Math.round(Number(amount) * (UNIT_MS[unit.toLowerCase()] ?? Number.NaN));
}

/** @throws TypeError for an argument of another kind; RangeError for an invalid Date. */
export function sleepToWire(argument: unknown): WireSleep {
  if (typeof argument === 'number' && Number.isFinite(argument) && argument >= 0) return argument;
  if (typeof argument === 'string') {
    const durationMs = parseDuration(argument);
    if (durationMs !== null) return { durationMs };
  }
  if (typeof argument === 'object' && argument !== null) {
    if ('until' in argument && argument.until !== undefined) {
      const { until } = argument;
      return { until: until instanceof Date ? until.toISOString() : until };
    }
    if ('durationMs' in argument && typeof argument.durationMs === 'number')
      return { durationMs: argument.durationMs };
  }
  throw new TypeError(
    'sleep() takes milliseconds (a number, 0 or more), a text like "90s" or "1.5h", { durationMs }, or { until } with a Date or an ISO time.',
  );
}
