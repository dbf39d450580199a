// Integration tests drive the built program too: a stale or missing dist would test something else than the source.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export default function setup(): void {
  const runtime = fileURLToPath(new URL('../../dist/sandbox/runtime.mjs', import.meta.url));
  if (!existsSync(runtime))
    throw new Error('dist/ is missing: run `npm run build` first (npm test does it).');
}
