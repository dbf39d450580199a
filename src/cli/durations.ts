// Times as a person writes them in a setting: 500ms, 22s, 5m, 2h.

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Milliseconds, or `null` when the text is no such time. A unit is required: a bare number says too little. */
export function parseDurationText(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h)$/.exec(text.trim());
  const unitMs = UNIT_MS[match?.[2] ?? ''];
  if (match?.[1] === undefined || unitMs === undefined) return null;
  return Math.round(Number(match[1]) * unitMs);
}

/** The shortest text that stands for exactly these milliseconds. */
export function durationText(ms: number): string {
  const [unit, unitMs] =
    Object.entries(UNIT_MS).findLast(([, length]) => ms > 0 && ms % length === 0) ?? (['ms', 1] as const);
  return `${ms / unitMs}${unit}`;
}
