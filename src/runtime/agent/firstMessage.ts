// The message that opens a conversation (protocol/agent-loop.md 3). Blocks in a fixed order, because a stable beginning
// is what providers cache; today only the environment and the prompt are there.

/** `now` in ms since the epoch. */
export function firstMessage(prompt: string, now: number): string {
  const date = new Date(now);
  const weekday = date.toLocaleDateString('en-US', { weekday: 'long', timeZone: 'UTC' });
  return `<env>\nToday is ${weekday}, ${date.toISOString().slice(0, 10)} (UTC).\n</env>\n\n${prompt}`;
}
