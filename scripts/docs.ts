// `npm run docs`: writes the generated parts of docs/ anew. A test fails when one is stale.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { settingsReference } from '../src/cli/settingsReference.js';

const MARKS = ['<!-- settings: begin (npm run docs) -->', '<!-- settings: end -->'] as const;
export const CONFIGURATION = join(import.meta.dirname, '../docs/configuration.md');

/** The page with its generated part anew. */
export async function configurationPage(page: string): Promise<string> {
  const [begin, end] = MARKS.map((mark) => page.indexOf(mark));
  if (begin === undefined || end === undefined || begin < 0 || end < begin)
    throw new Error(`${CONFIGURATION} has lost its marks: ${MARKS.join(' ')}`);
  const text = `${page.slice(0, begin + MARKS[0].length)}\n\n${settingsReference()}\n\n${page.slice(end)}`;
  return format(text, { ...(await resolveConfig(CONFIGURATION)), filepath: CONFIGURATION });
}

if (process.argv[1] === import.meta.filename)
  writeFileSync(CONFIGURATION, await configurationPage(readFileSync(CONFIGURATION, 'utf8')));
