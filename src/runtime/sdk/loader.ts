// The main module of a program's process: `node loader.mjs <entry>` (protocol/program.md 3.2). It connects to the host,
// loads the entry, calls its default export, reports what came of it and ends the process. It guards against an end
// without a word: whatever is thrown, wherever, is reported before the process goes.

import { pathToFileURL } from 'node:url';
import { isRecord } from '../../contract/json.js';
import { FAILED_METHOD } from '../loaderCalls.js';
import { outputRefusal } from '../outputBound.js';
import { host } from './connection.js';
import { relayConsole } from './consoleRelay.js';
import { encodeValue } from './encode.js';
import type { HostClient } from './hostClient.js';
import { HostError } from './hostError.js';
import { reviveValue } from './revive.js';

const WANTED_EXPORT = 'export default async function run(input, context) { … }';

/** Of each part of an error; the finalize takes less. */
const REPORTED_CHARS = 64 * 1024;

type RunFunction = (input: unknown, context: unknown) => unknown;

async function runEntry(client: HostClient, entry: string): Promise<void> {
  const { input, input_schema: schema, context } = record(await client.request('bootstrap', {}));
  const run = await importRun(entry);
  const value = await run(reviveValue(input, schema), contextFor(context, client.signal));
  const encoded = encodeValue(value);
  const refusal = outputRefusal(encoded);
  if (refusal !== undefined) throw new HostError(refusal.code, refusal.message, { hint: refusal.hint });
  await client.request('report_return', { value: encoded });
}

async function importRun(entry: string): Promise<RunFunction> {
  const module: unknown = await import(pathToFileURL(entry).href);
  const run = record(module)['default'];
  if (isRunFunction(run)) return run;
  const found = Object.keys(record(module)).filter((name) => name !== 'default');
  throw new HostError(
    'VALIDATION',
    `The program's entry has no function as its default export${found.length === 0 ? '' : ` (it exports ${found.join(', ')})`}.`,
    { hint: `The entry must have: ${WANTED_EXPORT}` },
  );
}

/** Everything but the signal is frozen data. */
function contextFor(context: unknown, signal: AbortSignal): unknown {
  return Object.freeze({ ...record(freezeDeep(context)), signal });
}

function freezeDeep(value: unknown): unknown {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.values(value).forEach(freezeDeep);
    Object.freeze(value);
  }
  return value;
}

/** What was thrown, as far as it lets itself be read: it may be anything, with getters that throw. */
function describe(thrown: unknown): Record<string, unknown> {
  try {
    if (typeof thrown !== 'object' || thrown === null) return { message: String(thrown) };
    const { name, code, message, hint, data, stack } = thrown as Record<string, unknown>;
    const dataHint = isRecord(data) ? data['hint'] : undefined;
    const described = {
      name,
      code,
      message: typeof message === 'string' ? message : JSON.stringify(thrown),
      hint: typeof hint === 'string' && hint !== '' ? hint : dataHint,
      // For the log of a runtime that is debugged; never part of the run's error.
      stack,
    };
    const texts = Object.entries(described).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    );
    return Object.fromEntries(texts.map(([part, text]) => [part, text.slice(0, REPORTED_CHARS)]));
  } catch {
    return { message: 'The program threw a value that can not be read.' };
  }
}

function isRunFunction(value: unknown): value is RunFunction {
  return typeof value === 'function';
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

async function main(): Promise<never> {
  const [, , entry = ''] = process.argv;
  const client = await host();
  Reflect.deleteProperty(process.env, 'BOARDWALK_HOST_SOCK');
  relayConsole(client);
  // An author wants to read the lines of the source, not those of a bundle.
  process.setSourceMapsEnabled(true);
  let failing = false;
  const fail = async (thrown: unknown): Promise<never> => {
    if (failing) return process.exit(1);
    failing = true;
    await client.request(FAILED_METHOD, describe(thrown)).catch(() => undefined);
    return process.exit(1);
  };
  process.on('uncaughtException', (error) => {
    // An author who handles these wants the program to go on.
    if (process.listenerCount('uncaughtException') === 1) void fail(error);
  });
  try {
    await runEntry(client, entry);
  } catch (error) {
    return fail(error);
  }
  await client.flushed();
  return process.exit(0);
}

await main();
