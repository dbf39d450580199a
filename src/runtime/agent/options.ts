// What a program may ask of an agent call in this version. Checked before anything is shown or costs money; an option
// that is not there yet is refused by its name instead of being ignored, because an agent without its tools answers
// something else than was asked for.

import type { AgentOptions } from '../../contract/hostPayloads.js';
import { isRecord, ownMember, type UnknownRecord } from '../../contract/json.js';
import { notAvailable, RunFailure } from '../runFailure.js';

/** What a leaf makes use of. `name` is absent when empty; `model` and `provider` are opaque and passed on verbatim. */
export interface LeafOptions extends Readonly<Pick<AgentOptions, 'name' | 'model' | 'provider'>> {
  /** Normalised by the SDK; an object or absent. */
  readonly reasoning?: UnknownRecord;
}

/** Author-facing names; `sessionId` is what a session is on the wire (protocol/sdk.md 4.1). */
const NOT_YET: Readonly<Record<string, string>> = {
  tools: 'tools',
  schema: 'schema',
  mcp: 'mcp',
  skills: 'skills',
  memory: 'memory',
  humanInput: 'humanInput',
  session: 'session',
  sessionId: 'session',
  attachments: 'attachments',
  cwd: 'cwd',
} satisfies Partial<Record<keyof AgentOptions | 'session', string>>;

/** @throws RunFailure `VALIDATION` that names the field, `UNSUPPORTED` that names the option. Unknown options are ignored. */
export function readAgentOptions(value: unknown): LeafOptions {
  if (value === undefined || value === null) return {};
  if (!isRecord(value)) throw invalid('The options', 'must be an object');
  for (const [option, name] of Object.entries(NOT_YET)) {
    if (asksForSomething(ownMember(value, option))) throw notAvailable(`The agent option \`${name}\``);
  }
  const { builtins, maxIterations, reasoning } = value;
  if (builtins !== undefined && builtins !== 'none') {
    throw notAvailable(`The agent option \`builtins\` with another value than 'none'`);
  }
  if (maxIterations !== undefined && typeof maxIterations !== 'number')
    throw invalid('`maxIterations`', 'must be a number');
  if (reasoning !== undefined && !isRecord(reasoning))
    throw invalid('`reasoning`', 'must be an effort or an object');
  const name = optionalText(value, 'name');
  const model = optionalText(value, 'model');
  const provider = optionalText(value, 'provider');
  return {
    // An empty agentName would make its event invalid (protocol/events.md 4).
    ...(name === undefined || name === '' ? {} : { name }),
    ...(model === undefined ? {} : { model }),
    ...(provider === undefined ? {} : { provider }),
    ...(reasoning === undefined ? {} : { reasoning }),
  };
}

/** Empty lists and `false` ask for nothing. */
function asksForSomething(value: unknown): boolean {
  return (
    value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0)
  );
}

function optionalText(options: UnknownRecord, field: string): string | undefined {
  const value = ownMember(options, field);
  if (value === undefined || typeof value === 'string') return value;
  throw invalid(`\`${field}\``, 'must be a string');
}

function invalid(what: string, problem: string): RunFailure {
  return new RunFailure('VALIDATION', `agent(): ${what} ${problem}.`);
}
