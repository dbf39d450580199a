// One attempt as a plain process on this host, from its start to the proof that nothing of it is left. It guards
// against a run that ends in silence (every line that it wrote is handed out before its end is told), and against
// daemons that outlive their run. How it is started is the kind's business.

import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { Logger } from 'pino';
import { encodeHandOver } from '../../../contract/handOver.js';
import { waitFor } from '../../../waiting/waiting.js';
import { SandboxSurvivorsError, type Sandbox, type SandboxExit, type SandboxSpec } from '../sandbox.js';
import { killTree } from './killTree.js';
import { LogLines } from './logLines.js';
import { pidOf, type ProcessEntry, type ProcessTable } from './processTable.js';
import type { TreeEvidence } from './processTree.js';

/** How long log lines are waited for once everything is dead; only a stranger who was handed the pipe keeps it open. */
const STREAM_END_TIMEOUT_MS = 2_000;

export interface ProcessSandboxParts {
  readonly spec: SandboxSpec;
  /** Just started, leader of its own session, all three streams piped. */
  readonly child: ChildProcessWithoutNullStreams;
  readonly evidence: TreeEvidence;
  readonly table: ProcessTable;
  readonly log: Logger;
}

export class ProcessSandbox implements Sandbox {
  readonly id: string;
  readonly exited: Promise<SandboxExit>;
  readonly #parts: ProcessSandboxParts;
  #terminated = false;
  /** Nothing of the sandbox lives: a look that found nothing is the proof. */
  #proven = false;
  #survivors: readonly ProcessEntry[] = [];
  #killing: Promise<readonly ProcessEntry[]> | undefined;

  constructor(parts: ProcessSandboxParts) {
    this.id = parts.spec.sandboxId;
    this.#parts = parts;
    const { child, spec, log } = parts;
    const streamsEnded = Promise.all([
      readLines(child.stdout, (line) => spec.onLog('stdout', line)),
      readLines(child.stderr, (line) => spec.onLog('stderr', line)),
    ]);
    child.on('error', (error) => log.warn({ err: error, sandboxId: this.id }, 'signal to a sandbox failed'));
    // A runtime that dies before it has read its hand-over is an exit; the broken pipe adds nothing to that.
    child.stdin.on('error', () => undefined);
    child.stdin.end(encodeHandOver(spec.handOver));
    this.exited = this.#untilGone(streamsEnded);
  }

  async stop({ graceMs }: { readonly graceMs: number }): Promise<void> {
    if (graceMs > 0) {
      this.#terminate();
      await this.#exitedWithin(graceMs);
    }
    if (!this.#proven) {
      const survivors = await this.#kill();
      if (survivors.length > 0)
        throw SandboxSurvivorsError.ofProcesses(`Sandbox ${this.id}`, survivors.map(pidOf));
    }
    await this.exited;
  }

  /** Once only: a second SIGTERM may mean something else to a runtime that is already winding up. */
  #terminate(): void {
    if (this.#terminated) return;
    this.#terminated = true;
    this.#parts.child.kill('SIGTERM');
  }

  async #exitedWithin(ms: number): Promise<void> {
    await waitFor(this.exited, { ms });
  }

  async #untilGone(streamsEnded: Promise<unknown>): Promise<SandboxExit> {
    const { child } = this.#parts;
    const exit = await new Promise<SandboxExit>((resolve) => {
      child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }));
    });
    const unproven = await this.#whatIsLeft();
    await waitFor(streamsEnded, { ms: STREAM_END_TIMEOUT_MS });
    child.stdout.destroy();
    child.stderr.destroy();
    await streamsEnded;
    return unproven === undefined ? exit : { ...exit, unproven };
  }

  async #whatIsLeft(): Promise<string | undefined> {
    const { log } = this.#parts;
    try {
      const survivors = await this.#kill();
      if (survivors.length === 0) return undefined;
      const pids = survivors.map(pidOf);
      log.error({ sandboxId: this.id, pids }, 'processes of a sandbox outlive SIGKILL');
      return `processes outlive SIGKILL: ${pids.slice(0, 10).join(', ')}`;
    } catch (error) {
      log.error({ err: error, sandboxId: this.id }, 'could not look for what a sandbox has left');
      return 'the processes of this host could not be listed';
    }
  }

  /** One at a time: it goes on until it finds nothing, so whoever comes in between is served by it. */
  #kill(): Promise<readonly ProcessEntry[]> {
    this.#killing ??= killTree(this.#parts.table, this.#parts.evidence, { known: this.#survivors })
      .then((survivors) => {
        this.#survivors = survivors;
        this.#proven = survivors.length === 0;
        return survivors;
      })
      .finally(() => {
        this.#killing = undefined;
      });
    return this.#killing;
  }
}

/** Resolves when the stream has ended or was destroyed, after its last line. Never rejects. */
function readLines(stream: Readable, onLine: (line: string) => void): Promise<void> {
  const lines = new LogLines(onLine);
  return new Promise((resolve) => {
    stream.on('data', (chunk: Buffer) => lines.push(chunk));
    stream.on('error', () => undefined); // A reset pipe ends like a closed one.
    stream.once('close', () => {
      lines.end();
      resolve();
    });
  });
}
