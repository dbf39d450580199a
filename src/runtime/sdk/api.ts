// What authors call (protocol/sdk.md 1). Each function is one request to the host; checks that need no host are made
// here, before anything is sent. A result of another shape is a fault of the host and never reaches the program.

import { isRecord } from '../../contract/json.js';
import { callHost, connectedHost, host } from './connection.js';
import { encodeValue } from './encode.js';
import { HostError } from './hostError.js';
import { normalizeReasoning } from './reasoning.js';
import { type SleepArgument, sleepToWire } from './sleepArgument.js';

export interface ShellResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs an agent and resolves with its final text (with `schema`: its parsed value). */
export async function agent(prompt: string, opts: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
  return member(await callHost('agent', { prompt, opts: agentOptionsToWire(opts) }), 'output', 'agent');
}

/** Names a part of the run in its live view. Fire and forget; without a host it only warns. */
export function phase(name: string, opts?: { readonly id?: string }): void {
  const params = opts === undefined ? { name } : { name, opts };
  const client = connectedHost();
  if (client !== undefined) {
    client.notify('phase', params);
    return;
  }
  host().then(
    (opened) => opened.notify('phase', params),
    (error: unknown) =>
      console.warn(
        `phase(${JSON.stringify(name)}): ${error instanceof Error ? error.message : String(error)}`,
      ),
  );
}

/** Milliseconds, a text like `90s`, `{ durationMs }`, or `{ until }` with a Date or an ISO time. */
export async function sleep(argument: SleepArgument): Promise<void> {
  await callHost('sleep', { arg: sleepToWire(argument) });
}

/** Runs a command in the system's shell; resolves whatever its exit code is. */
export async function shell(cmd: string, opts?: Readonly<Record<string, unknown>>): Promise<ShellResult> {
  const result = await callHost('shell', opts === undefined ? { cmd } : { cmd, opts });
  const { exitCode, stdout, stderr } = isRecord(result) ? result : {};
  if (typeof exitCode !== 'number' || typeof stdout !== 'string' || typeof stderr !== 'string')
    throw malformed('shell');
  return { exitCode, stdout, stderr };
}

export const secrets = {
  /** The value of a secret that the workflow's descriptor lists. */
  async get(name: string): Promise<string> {
    const value = member(await callHost('secrets.get', { name }), 'value', 'secrets.get');
    if (typeof value !== 'string') throw malformed('secrets.get');
    return value;
  },
};

export const usage = {
  /** What the run has spent, and its caps. */
  async get(): Promise<unknown> {
    return callHost('usage.get', {});
  },
};

// From here on: not in this version. The host says so by name; the shapes of the calls are those of the protocol.

export const workflows = {
  async call(slug: string, input?: unknown, opts?: unknown): Promise<unknown> {
    return callHost('workflows.call', { slug, input: encodeValue(input), opts });
  },
  async run(slug: string, input?: unknown, opts?: unknown): Promise<unknown> {
    return callHost('workflows.run', { slug, input: encodeValue(input), opts });
  },
  async schedule(slug: string, input?: unknown, opts?: unknown): Promise<unknown> {
    return callHost('workflows.schedule', { slug, input: encodeValue(input), opts });
  },
};

export async function humanInput(opts: unknown): Promise<unknown> {
  return callHost('humanInput', { opts });
}

export const artifacts = {
  async write(name: string): Promise<unknown> {
    return callHost('artifacts.write', { name });
  },
};

export const auth = {
  async idToken(audience: string): Promise<unknown> {
    return callHost('auth.idToken', { audience });
  },
  async apiToken(): Promise<unknown> {
    return callHost('auth.apiToken', {});
  },
};

export const computer = {
  async openBrowser(opts?: unknown): Promise<unknown> {
    return callHost('computer.openBrowser', { opts });
  },
  async openDesktop(opts?: unknown): Promise<unknown> {
    return callHost('computer.openDesktop', { opts });
  },
};

function agentOptionsToWire(opts: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { reasoning, ...others } = opts;
  const normalized = normalizeReasoning(reasoning);
  return { ...others, ...(normalized === undefined ? {} : { reasoning: normalized }) };
}

function member(result: unknown, name: string, method: string): unknown {
  if (isRecord(result) && result[name] !== undefined) return result[name];
  throw malformed(method);
}

function malformed(method: string): HostError {
  return new HostError('PROTOCOL_ERROR', `The host's answer to ${method} has another shape than agreed.`);
}
