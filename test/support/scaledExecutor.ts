// Executors of a local fleet whose lock lives for seconds, all figures scaled together.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FleetProcess, type LocalFleet } from './localFleet.js';

const PROGRAM = fileURLToPath(new URL('programs/scaledExecutor.ts', import.meta.url));

export interface ScaledExecutorOptions {
  /** Its work directory's too: whoever comes after it under the same name finds what it left. */
  readonly name: string;
  /** Default 4. */
  readonly slots?: number;
  /** Lock, renewal and margin in ms. Default 3 s and what fits it. */
  readonly lock?: readonly [number, number, number];
  /** Its sandboxes are containers of this image. Default: processes. */
  readonly image?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Resolves when it is ready. */
export async function startScaledExecutor(
  fleet: LocalFleet,
  { name, slots = 4, lock = [3_000, 450, 900], image = '', environment = {} }: ScaledExecutorOptions,
): Promise<FleetProcess> {
  const workDir = join(fleet.dir, name);
  await mkdir(workDir, { recursive: true });
  const places = [fleet.name, fleet.redis.url, join(fleet.dir, 'fleet.key'), workDir];
  const args = ['--import', 'tsx', PROGRAM, ...places, String(slots), lock.join(','), image];
  const started = FleetProcess.ofNode(name, args, { TMPDIR: fleet.dir, ...environment });
  await started.line('executor ready');
  return started;
}
