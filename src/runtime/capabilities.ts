// What a program may ask of its host, method by method (protocol/sdk.md 4). It guards against parameters that only fail
// deep inside, and against a method that is silently not there: what this version can't do says so by its name.

import type { ClientMethod } from '../contract/hostProtocol.js';
import { isRecord, ownMember, type UnknownRecord } from '../contract/json.js';
import type { SecretSet } from '../redaction/secretSet.js';
import { redact } from '../redaction/redact.js';
import type { Agents } from './agent/leaf.js';
import type { Budget } from './budget.js';
import type { BootContext } from './context.js';
import type { EventBody } from './eventStream.js';
import { FAILED_METHOD } from './loaderCalls.js';
import type { ProgramReport } from './programReport.js';
import { notAvailable, RunFailure } from './runFailure.js';
import type { Secrets } from './secrets.js';
import { readShellOptions, runShell, type ShellDependencies } from './shell.js';
import { sleepFor, sleepMs } from './sleep.js';

export interface CapabilityDependencies {
  readonly input: unknown;
  readonly inputSchema: UnknownRecord | null;
  readonly context: BootContext;
  readonly agents: Agents;
  readonly budget: Budget;
  readonly secretCalls: Secrets;
  readonly secrets: SecretSet;
  readonly shell: ShellDependencies;
  readonly report: ProgramReport;
  readonly emit: (event: EventBody) => void;
  /** Aborted when the run is to stop or the program has ended, with the error that calls then fail with. */
  readonly signal: AbortSignal;
  readonly log: (message: string) => void;
}

/** Methods of protocol/sdk.md 4 that this version doesn't have, and what they are called in the author's API. */
const NOT_YET: Readonly<Record<string, string>> = {
  'workflows.call': 'workflows.call()',
  'workflows.run': 'workflows.run()',
  'workflows.schedule': 'workflows.schedule()',
  humanInput: 'humanInput()',
  'artifacts.write': 'artifacts.write()',
  'auth.idToken': 'auth.idToken()',
  'auth.apiToken': 'auth.apiToken()',
  'computer.openBrowser': 'computer.openBrowser()',
  'computer.openDesktop': 'computer.openDesktop()',
} satisfies Partial<Record<ClientMethod, string>>;

/** These answer also after the run was stopped: the loader must be able to report how the program ended. */
const ALWAYS: ReadonlySet<string> = new Set(['bootstrap', 'report_return', FAILED_METHOD]);

export class Capabilities {
  readonly #deps: CapabilityDependencies;
  readonly #phaseIds = new Set<string>();
  readonly #inProgress = new Set<Promise<unknown>>();

  constructor(deps: CapabilityDependencies) {
    this.#deps = deps;
  }

  /** @throws RunFailure, or whatever the call failed with */
  async request(method: string, params: unknown): Promise<unknown> {
    if (!ALWAYS.has(method)) this.#deps.signal.throwIfAborted();
    const given = params === undefined ? {} : params;
    if (!isRecord(given)) throw new RunFailure('INVALID_PARAMS', `${method}: params must be an object.`);
    const work = this.#dispatch(method, given);
    this.#inProgress.add(work);
    try {
      return await work;
    } finally {
      this.#inProgress.delete(work);
    }
  }

  /** Resolves when no call is in progress any more. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#inProgress);
  }

  notification(method: string, params: unknown): void {
    if (method !== 'phase') return;
    try {
      this.#phase(isRecord(params) ? params : {});
    } catch (error) {
      this.#deps.log(`phase: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async #dispatch(method: string, params: UnknownRecord): Promise<unknown> {
    const { agents, budget, secretCalls, shell, report, signal } = this.#deps;
    switch (method) {
      case 'bootstrap': {
        const { input, inputSchema, context } = this.#deps;
        return { input, input_schema: inputSchema, context };
      }
      case 'report_return':
        report.returned(ownMember(params, 'value'));
        return {};
      case FAILED_METHOD:
        report.threw(params);
        return {};
      case 'agent':
        return { output: await agents.run(params['prompt'], params['opts']) };
      case 'sleep': {
        const ms = sleepMs(params['arg'], Date.now());
        budget.check();
        await sleepFor(ms, signal);
        return {};
      }
      case 'secrets.get':
        return { value: await secretCalls.resolve(textOf(method, params, 'name')) };
      case 'shell': {
        const cmd = textOf(method, params, 'cmd');
        const options = readShellOptions(params['opts']);
        budget.check();
        return runShell(cmd, options, shell);
      }
      case 'usage.get':
        return budget.snapshot();
      default:
        if (Object.hasOwn(NOT_YET, method)) throw notAvailable(NOT_YET[method] ?? method);
        throw new RunFailure(
          'METHOD_NOT_FOUND',
          `The host has no method ${JSON.stringify(method.slice(0, 100))}.`,
        );
    }
  }

  #phase(params: UnknownRecord): void {
    const name = textOf('phase', params, 'name').trim();
    const opts = isRecord(params['opts']) ? params['opts'] : {};
    const id = typeof opts['id'] === 'string' ? opts['id'].trim() : `phase-${this.#phaseIds.size + 1}`;
    if (name === '' || id === '') throw new RunFailure('VALIDATION', 'name and id must not be blank.');
    if (this.#phaseIds.has(id))
      throw new RunFailure('VALIDATION', `the id ${JSON.stringify(id)} was used before.`);
    this.#phaseIds.add(id);
    const { secrets, emit } = this.#deps;
    emit({ kind: 'phase', name: redact(name, secrets), id: redact(id, secrets) });
  }
}

function textOf(method: string, params: UnknownRecord, name: string): string {
  const value = ownMember(params, name);
  if (typeof value === 'string' && value !== '') return value;
  throw new RunFailure('INVALID_PARAMS', `${method}: ${name} must be a string that is not empty.`);
}
