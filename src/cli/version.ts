// Which version of the program this is; it goes into user agents, executor records and `--version`.

import { readFileSync } from 'node:fs';

/** The version in our package.json. */
export function packageVersion(): string {
  // From dist/cli and from src/cli the package's root is two folders up.
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const { version } = JSON.parse(text) as { version?: unknown };
  return typeof version === 'string' ? version : '0.0.0';
}
