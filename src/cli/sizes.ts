// Sizes as a person writes them in a setting: 512m, 2g, or bytes. Units are those of container engines: 1k is 1024.

const UNIT_BYTES: Readonly<Record<string, number>> = { b: 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 };
const LARGEST_FIRST = ['g', 'm', 'k'] as const;

/** Bytes, or `null` when the text is no such size. */
export function parseSizeText(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*([bkmg]?)$/i.exec(text.trim());
  const unitBytes = UNIT_BYTES[(match?.[2] ?? '').toLowerCase() || 'b'];
  if (match?.[1] === undefined || unitBytes === undefined) return null;
  return Math.round(Number(match[1]) * unitBytes);
}

/** The shortest text that stands for exactly these bytes. */
export function sizeText(bytes: number): string {
  const unit = LARGEST_FIRST.find((name) => bytes > 0 && bytes % (UNIT_BYTES[name] ?? 1) === 0);
  return unit === undefined ? String(bytes) : `${bytes / (UNIT_BYTES[unit] ?? 1)}${unit}`;
}
