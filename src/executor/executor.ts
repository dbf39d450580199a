// Takes claimed runs while a slot is free and gives each an attempt. It guards against overrun slots, against taking
// while it shuts down (P14), and against an end that leaves work behind: a drain lets attempts finish, and what is
// left at the deadline is handed back so that another executor starts it at once.

import type { ExecutorRecord } from '../queue/executors.js';
import type { TakenRun } from '../queue/runsQueue.js';
import { Attempt, type AttemptDependencies } from './attempt.js';
import { reapHomes, type ExecutorHome } from './home.js';
import { LeaseLinger } from './leaseLinger.js';
import type { AttemptResult } from './settlement.js';
import { StartTrouble } from './startTrouble.js';
import { pause, untilAborted, waitFor } from '../waiting/waiting.js';

export interface ExecutorOptions extends Omit<AttemptDependencies, 'linger' | 'trouble' | 'executorId'> {
  readonly id: string;
  readonly pool: string;
  readonly labels: readonly string[];
  readonly slots: number;
  readonly host: string;
  readonly bootId: string | null;
  readonly version: string;
  /** Where leftovers of others are looked for. */
  readonly workDir: string;
  /** Opened by whoever made it; closed here, as the last thing. */
  readonly home: ExecutorHome;
  /** Called after each attempt has left its slot. */
  readonly onAttemptEnd?: (runId: string, result: AttemptResult) => void;
}

/** How often the record is written while nothing changes; its TTL lets two writes fail. */
const RECORD_MS = 5_000;
const RECORD_TTL_MS = 15_000;
/** What a hand-back at the drain's deadline may take: the fence's grace and the removal. */
const HAND_BACK_MS = 10_000;
/** How often an end that waits looks at its deadline. */
const LOOK_MS = 250;
/** What the end waits for Redis to hear of it; without a word the record ends by its TTL (P22). */
const LAST_WORD_MS = 1_000;

type ExecutorState = 'new' | 'running' | 'draining' | 'stopped';

export class Executor {
  readonly #options: ExecutorOptions;
  readonly #attempts = new Map<Attempt, Promise<void>>();
  readonly #taking = new AbortController();
  readonly #ended = new AbortController();
  readonly #linger: LeaseLinger;
  readonly #trouble = new StartTrouble();
  readonly #startedAtMs: number;
  #slotFreed: (() => void) | undefined;
  #state: ExecutorState = 'new';
  #loops: readonly Promise<void>[] = [];
  #stopping: Promise<void> | undefined;
  /** On the monotonic clock, as is the next. */
  #deadline = Infinity;
  #handedBackAt: number | undefined;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#linger = new LeaseLinger(options.fleet.runStates, options.log);
    this.#startedAtMs = options.clocks.wall();
  }

  get busy(): number {
    return this.#attempts.size;
  }

  async start(): Promise<void> {
    if (this.#state !== 'new') return;
    this.#state = 'running';
    const { sandboxes, workDirectory, gateway, workDir, log } = this.#options;
    for (const warning of await sandboxes.check()) log.warn(warning);
    // After the sandboxes in them.
    const reaped = await reapHomes(workDir, log);
    if (reaped.length > 0) log.warn({ reaped }, 'directories of executors that are gone removed');
    await workDirectory.prepare();
    await gateway.start();
    await this.#record();
    this.#loops = [this.#take(), this.#keepRecord()];
    log.info(
      { executor: this.#options.id, slots: this.#options.slots, sandbox: sandboxes.name },
      'executor ready',
    );
  }

  /**
   * Takes nothing more and lets running attempts finish; at the deadline they are handed back. Resolves when every
   * sandbox of ours is gone and every finalize is acknowledged or the deadline has passed. A second call may bring the
   * deadline forward, and hands back at once.
   */
  stop(options: { readonly deadline: number }): Promise<void> {
    if (this.#stopping !== undefined && options.deadline < this.#deadline) this.#handBackAll();
    this.#deadline = Math.min(this.#deadline, options.deadline);
    this.#stopping ??= this.#drain();
    return this.#stopping;
  }

  #handBackAll(): void {
    this.#handedBackAt ??= this.#options.clocks.mono();
    for (const attempt of this.#attempts.keys()) attempt.handBack();
  }

  async #drain(): Promise<void> {
    if (this.#state === 'new') {
      this.#state = 'stopped';
      await this.#options.home.close(this.#options.log);
      return;
    }
    this.#state = 'draining';
    this.#taking.abort();
    const { clocks, fleet, gateway, home, id, log } = this.#options;
    await this.#lastWord(this.#record());
    if (!(await this.#attemptsEnd(() => this.#deadline))) {
      log.warn({ attempts: this.busy }, 'drain deadline passed: running attempts are handed back');
      this.#handBackAll();
      await this.#attemptsEnd(() => (this.#handedBackAt ?? 0) + HAND_BACK_MS);
    }
    await this.#linger.stop(() => clocks.mono() >= this.#deadline);
    this.#state = 'stopped';
    this.#ended.abort();
    await Promise.all(this.#loops);
    await gateway.stop();
    await home.close(log);
    await this.#lastWord(fleet.executors.remove(id));
    log.info({ executor: id }, 'executor stopped');
  }

  /** @param deadline asked again and again: it may be brought forward meanwhile. @returns `false` when it has passed */
  async #attemptsEnd(deadline: () => number): Promise<boolean> {
    const { clocks } = this.#options;
    const ended = Promise.all(this.#attempts.values());
    for (;;) {
      const leftMs = deadline() - clocks.mono();
      if ((await waitFor(ended, { ms: Math.min(LOOK_MS, leftMs) })).outcome === 'settled') return true;
      if (leftMs <= 0) return false;
    }
  }

  async #lastWord(said: Promise<void>): Promise<void> {
    await waitFor(
      said.catch(() => undefined),
      { ms: LAST_WORD_MS },
    );
  }

  async #take(): Promise<void> {
    const { fleet, pool, lockTiming, slots, log } = this.#options;
    const consumer = fleet.runs.consumer(pool, {
      lockMs: lockTiming.lockMs,
      stalledCheckMs: lockTiming.lockMs / 5,
    });
    const signal = this.#taking.signal;
    consumer.start();
    while (!signal.aborted) {
      if (this.#attempts.size >= slots) {
        await this.#untilSlotFree(signal);
        continue;
      }
      const pauseMs = this.#trouble.takePauseMs();
      if (pauseMs > 0) {
        log.warn({ pauseMs }, 'runs can not be started here at the moment: pausing before the next one');
        if (!(await pause(pauseMs, signal))) break;
      }
      const taken = await consumer.take(signal);
      if (taken !== null) this.#run(taken);
    }
    // The consumer also looks for stalled jobs and completes ours: it goes last.
    await untilAborted(this.#ended.signal);
    await consumer.stop();
  }

  #run(taken: TakenRun): void {
    const attempt = new Attempt(
      { ...this.#options, linger: this.#linger, trouble: this.#trouble, executorId: this.#options.id },
      taken,
    );
    const ended = attempt.run().then((result) => {
      this.#attempts.delete(attempt);
      this.#slotFreed?.();
      this.#options.onAttemptEnd?.(attempt.runId, result);
    });
    this.#attempts.set(attempt, ended);
  }

  async #untilSlotFree(signal: AbortSignal): Promise<void> {
    const freed = new Promise<void>((resolve) => {
      this.#slotFreed = resolve;
    });
    await waitFor(freed, { signal });
  }

  async #keepRecord(): Promise<void> {
    const signal = this.#ended.signal;
    while (await pause(RECORD_MS, signal)) {
      const writing = this.#record().catch((error: unknown) =>
        this.#options.log.warn({ err: error }, 'executor record not written'),
      );
      await waitFor(writing, { signal });
    }
  }

  async #record(): Promise<void> {
    const { id, pool, labels, slots, host, bootId, version, sandboxes, clocks, fleet } = this.#options;
    const record: ExecutorRecord = {
      id,
      host,
      bootId,
      pool,
      labels: [...labels],
      slots,
      busy: this.busy,
      version,
      state: this.#state === 'running' ? 'ready' : 'draining',
      sandbox: sandboxes.name,
      startedAtMs: this.#startedAtMs,
      atMs: clocks.wall(),
    };
    await fleet.executors.put(record, RECORD_TTL_MS);
  }
}
