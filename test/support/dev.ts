// `boardwalk-fleet dev --json` as a test runs it, and the workflow folders that it runs.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProgram, type Row } from './localFleet.js';

export interface DevResult {
  readonly status: string;
  readonly output: unknown;
  readonly error: { readonly code: string; readonly message: string; readonly hint?: string } | null;
}

export interface DevEnd {
  readonly code: number | null;
  readonly rows: readonly Row[];
  readonly result: DevResult | undefined;
  readonly stderr: string;
}

/** Its standard output as rows and result. */
export async function runDev(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<DevEnd> {
  const { code, stdout, stderr } = await runProgram(['dev', ...args, '--json'], environment);
  const lines = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Row & { readonly result?: DevResult });
  return {
    code,
    stderr,
    rows: lines.filter((line) => line.result === undefined),
    result: lines.find((line) => line.result !== undefined)?.result,
  };
}

/** Workflow folders below a directory of their own. */
export class WorkflowFolders {
  readonly dir: string;
  #made = 0;

  private constructor(dir: string) {
    this.dir = dir;
  }

  static async open(): Promise<WorkflowFolders> {
    return new WorkflowFolders(await mkdtemp(join(tmpdir(), 'bwf-devtest-')));
  }

  /** One with these files; a descriptor is added. @returns its path */
  async make(files: Readonly<Record<string, string>>): Promise<string> {
    this.#made += 1;
    const dir = join(this.dir, `workflow-${this.#made}`);
    const all = { 'workflow.jsonc': '{ "slug": "t", "triggers": [{ "kind": "manual" }], }', ...files };
    for (const [path, text] of Object.entries(all)) {
      await mkdir(join(dir, path, '..'), { recursive: true });
      await writeFile(join(dir, path), text);
    }
    return dir;
  }

  async remove(): Promise<void> {
    await rm(this.dir, { recursive: true, force: true });
  }
}
