// Which of the known names a person may have meant by an unknown one.

/** The nearest name when it is close: a letter or two are wrong, or it is written in another case. */
export function nearest(word: string, names: readonly string[]): string | undefined {
  const mine = plain(word);
  const [best] = names
    .map((name) => ({ name, distance: distanceOf(mine, plain(name)) }))
    .sort((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= Math.min(2, mine.length / 3) ? best.name : undefined;
}

/** `redisUrl`, `redis_url` and `--redis-url` are meant as the same name. */
function plain(word: string): string {
  return word
    .slice(0, 64)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '');
}

/** Letters to add, drop or change (Levenshtein). */
function distanceOf(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [i, letter] of Array.from(one).entries()) {
    const next = [i + 1];
    for (const [j, match] of Array.from(other).entries())
      next.push(
        Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + (letter === match ? 0 : 1)),
      );
    row = next;
  }
  return row.at(-1) ?? 0;
}
