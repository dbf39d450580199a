// One container from its creation to the proof that it is gone: create, attach, start, wait, remove, each by ourselves.
// It guards against the ends that an engine loses: the last line of output (attached before the start, read to its end)
// and the exit state (nothing is removed by the engine itself, and a wait that breaks is asked again).

import { Writable } from 'node:stream';
import type Docker from 'dockerode';
import type { Logger } from 'pino';
import { pause, waitFor } from '../../../waiting/waiting.js';
import { LogLines } from '../process/logLines.js';
import {
  SandboxSurvivorsError,
  type Sandbox,
  type SandboxEndCause,
  type SandboxExit,
  type SandboxSpec,
} from '../sandbox.js';
import { engineErrorText, engineStatus, within } from './engine.js';

/** An engine under load is slow to create and to start; more than this is a fault (P40). */
const CREATE_MS = 60_000;
const START_MS = 60_000;
const INSPECT_MS = 10_000;
const KILL_MS = 10_000;
const REMOVE_MS = 30_000;
/** How long output is waited for once the container has ended. */
const OUTPUT_END_MS = 5_000;
/** How long an engine may be away before what it runs counts as lost. */
const ENGINE_AWAY_MS = 60_000;
const ASK_AGAIN_MS = 250;
const REMOVE_TRIES = 5;

/** Exit codes that only a signal leaves: 128 and its number. Our own processes never choose them. */
const SIGNAL_CODES: ReadonlyMap<number, string> = new Map([
  [132, 'SIGILL'],
  [134, 'SIGABRT'],
  [135, 'SIGBUS'],
  [136, 'SIGFPE'],
  [137, 'SIGKILL'],
  [139, 'SIGSEGV'],
]);

export interface ContainerParts {
  readonly docker: Docker;
  readonly options: Docker.ContainerCreateOptions;
  readonly sandboxId: string;
  /** Written on its standard input. */
  readonly input: string;
  readonly onLog: SandboxSpec['onLog'];
  readonly log: Logger;
}

interface ContainerState {
  readonly Running: boolean;
  readonly ExitCode: number;
  readonly OOMKilled: boolean;
}

export class ContainerSandbox implements Sandbox {
  readonly id: string;
  readonly exited: Promise<SandboxExit>;
  readonly #parts: ContainerParts;
  readonly #container: Docker.Container;
  /** No process of it lives: the engine has said so. */
  #proven = false;
  #terminated = false;
  readonly #stopped = new AbortController();

  private constructor(parts: ContainerParts, container: Docker.Container, outputEnded: Promise<void>) {
    this.id = parts.sandboxId;
    this.#parts = parts;
    this.#container = container;
    this.exited = this.#untilGone(outputEnded);
  }

  /** Never rejects: what could not be started is a sandbox that has ended. */
  static async start(parts: ContainerParts): Promise<Sandbox> {
    const { docker, options } = parts;
    try {
      const container = await within(docker.createContainer(options), CREATE_MS, 'create a container');
      const { outputEnded } = await attach(container, parts);
      await within(container.start(), START_MS, 'start a container');
      return new ContainerSandbox(parts, container, outputEnded);
    } catch (error) {
      return neverStarted(parts, error);
    }
  }

  async stop({ graceMs }: { readonly graceMs: number }): Promise<void> {
    if (graceMs > 0 && !this.#proven) {
      await this.#terminate();
      await waitFor(this.exited, { ms: graceMs });
    }
    if (!this.#proven) {
      this.#stopped.abort();
      await this.#kill();
    }
    const { unproven } = await this.exited;
    if (unproven !== undefined) throw new SandboxSurvivorsError(`Sandbox ${this.id}`, unproven);
  }

  /** Once only: a second SIGTERM may mean something else to a runtime that is already winding up. */
  async #terminate(): Promise<void> {
    if (this.#terminated) return;
    this.#terminated = true;
    await this.#signal('SIGTERM');
  }

  async #kill(): Promise<void> {
    await this.#signal('SIGKILL');
  }

  /** A container that has ended, or an engine that is away, shows in `exited`. */
  async #signal(signal: string): Promise<void> {
    try {
      await within(this.#container.kill({ signal }), KILL_MS, `send ${signal}`);
    } catch (error) {
      if (engineStatus(error) === 404 || engineStatus(error) === 409) return;
      this.#parts.log.warn(
        { sandboxId: this.id, why: engineErrorText(error) },
        'a sandbox was not signalled',
      );
    }
  }

  async #untilGone(outputEnded: Promise<void>): Promise<SandboxExit> {
    const end = await this.#untilEnded();
    if (end.unproven !== undefined) return end;
    this.#proven = true;
    await waitFor(outputEnded, { ms: OUTPUT_END_MS });
    const removal = await removeContainer(this.#container);
    if (removal !== undefined)
      this.#parts.log.error({ sandboxId: this.id, why: removal }, 'an ended container could not be removed');
    return end;
  }

  /** Waits, and asks again when the wait broke. */
  async #untilEnded(): Promise<SandboxExit> {
    let awaySince: number | undefined;
    const wait = { broke: false };
    for (;;) {
      const asked = this.#container.wait().catch((error: unknown) => {
        wait.broke ||= engineStatus(error) === undefined;
      });
      const { outcome } = await waitFor(asked, { signal: this.#stopped.signal });
      // Once it is killed, a wait that hangs with its engine must not hold the end.
      if (outcome === 'aborted') await this.#kill();
      try {
        const { State } = await within(this.#container.inspect(), INSPECT_MS, 'inspect a container');
        awaySince = undefined;
        if (!State.Running) return exitOf(State, wait.broke && !this.#stopped.signal.aborted);
      } catch (error) {
        if (engineStatus(error) === 404) return LOST;
        awaySince ??= performance.now();
        const patienceMs = this.#stopped.signal.aborted ? KILL_MS : ENGINE_AWAY_MS;
        if (performance.now() - awaySince > patienceMs)
          return { ...LOST, unproven: `the engine is away (${engineErrorText(error)})` };
      }
      await pause(ASK_AGAIN_MS);
    }
  }
}

/** Somebody has removed it, or nobody can tell. */
const LOST: SandboxExit = { exitCode: null, signal: null, cause: 'engine_lost' };

/** Removes it whatever it does. @returns why that failed; `undefined`: it is gone */
export async function removeContainer(container: Docker.Container): Promise<string | undefined> {
  let why = '';
  for (let tries = 0; tries < REMOVE_TRIES; tries += 1) {
    try {
      await within(container.remove({ force: true, v: true }), REMOVE_MS, 'remove a container');
      return undefined;
    } catch (error) {
      if (engineStatus(error) === 404) return undefined;
      // 409: somebody else is just removing it.
      why = engineErrorText(error);
    }
    await pause(ASK_AGAIN_MS);
  }
  return why;
}

/** Before the start, so that no line is missed; `outputEnded` settles when all of its output was handed out. */
async function attach(
  container: Docker.Container,
  { docker, input, onLog }: ContainerParts,
): Promise<{ readonly outputEnded: Promise<void> }> {
  const stream = await within(
    container.attach({ stream: true, hijack: true, stdin: true, stdout: true, stderr: true }),
    CREATE_MS,
    'attach to a container',
  );
  const stdout = linesTo((line) => onLog('stdout', line));
  const stderr = linesTo((line) => onLog('stderr', line));
  docker.modem.demuxStream(stream, stdout.sink, stderr.sink);
  const outputEnded = new Promise<void>((resolve) => {
    const end = (): void => {
      stdout.end();
      stderr.end();
      stream.end();
      resolve();
    };
    stream.on('error', () => undefined);
    stream.once('end', end);
    stream.once('close', end);
  });
  // Left open: closing it makes some engines let go of the output too. The reader stops at the line's end.
  stream.write(input);
  return { outputEnded };
}

function linesTo(onLine: (line: string) => void): { readonly sink: Writable; readonly end: () => void } {
  const lines = new LogLines(onLine);
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk);
      done();
    },
  });
  return { sink, end: () => lines.end() };
}

function exitOf({ ExitCode, OOMKilled }: ContainerState, engineWasAway: boolean): SandboxExit {
  const signal = SIGNAL_CODES.get(ExitCode) ?? null;
  const cause = causeOf(signal, OOMKilled, engineWasAway);
  return { exitCode: signal === null ? ExitCode : null, signal, ...(cause === undefined ? {} : { cause }) };
}

function causeOf(
  signal: string | null,
  oomKilled: boolean,
  engineWasAway: boolean,
): SandboxEndCause | undefined {
  // Each of the two alone is unreliable (P42).
  if (oomKilled && signal === 'SIGKILL') return 'out_of_memory';
  return engineWasAway ? 'engine_lost' : undefined;
}

/** What is left of a start that failed, perhaps one whose answer was lost, is removed before its end is told. */
async function neverStarted(
  { docker, options, sandboxId }: ContainerParts,
  error: unknown,
): Promise<Sandbox> {
  const removal = await removeContainer(docker.getContainer(options.name ?? ''));
  const exit: SandboxExit = {
    exitCode: null,
    signal: null,
    error: startFailure(error),
    ...causeOfStart(error),
    ...(removal === undefined ? {} : { unproven: `what is left of its start can't be removed (${removal})` }),
  };
  const stop = async (): Promise<void> => Promise.resolve();
  return { id: sandboxId, exited: Promise.resolve(exit), stop };
}

function causeOfStart(error: unknown): { readonly cause?: SandboxEndCause } {
  const status = engineStatus(error);
  if (status === undefined) return { cause: 'engine_lost' };
  return status === 404 && /no such image/i.test(engineErrorText(error)) ? { cause: 'image_missing' } : {};
}

function startFailure(error: unknown): string {
  const text = engineErrorText(error);
  const what = `The container can't be started: ${text}`;
  if (/docker-init|catatonit/.test(text))
    return `${what}. The engine lacks its init program (Debian: the package tini).`;
  return what;
}
