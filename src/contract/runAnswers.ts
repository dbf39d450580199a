// What the control plane answers on the run-control wire (protocol/run-control.md 4-8), read tolerantly: the fields we
// need are checked by name, unknown ones are kept in `raw` where somebody may forward them. The reference checks
// nothing here and crashes later. No validation library: the runtime's first calls are among these.

import { Fields, isStringMap } from './fields.js';
import { isRecord, type UnknownRecord } from './json.js';

export interface RunEnvironment {
  readonly id: string;
  readonly name: string;
}

export type TriggerKind = 'cron' | 'webhook' | 'manual';

export interface TriggerRequest {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Who started the run. Of a known type only the fields that a program's SDK knows, because it checks them strictly
 * (protocol/run-control.md 4.1); of an unknown one, what the server sent.
 */
export type Actor = UnknownRecord & { readonly type: string };

/** The run row, as far as a run process reads it. */
export interface RunRow {
  readonly id: string;
  readonly orgId: string;
  readonly workflowId: string;
  readonly workflowVersionId: string | null;
  readonly environmentId: string | null;
  /** >= 1; 1 when the server doesn't say. */
  readonly attempt: number;
  readonly actor: Actor;
  /** Unknown kinds are `manual`. */
  readonly triggerKind: TriggerKind;
  /** null when absent or malformed. */
  readonly triggerRequest: TriggerRequest | null;
  /** The explicit input; null when there is none. */
  readonly input: unknown;
  /** Used when there is no explicit input (`effectiveInput`). */
  readonly triggerPayload: unknown;
  /** Deploy-time configuration of generation 0.2. */
  readonly config: UnknownRecord | null;
  /** ms; becomes `trigger.firedAt`. */
  readonly createdAt: number;
  readonly startedAt: number | null;
}

export interface RunClaim {
  readonly run: RunRow;
  /** ms; undefined when the server doesn't say. */
  readonly leaseUntil: number | undefined;
  /** Highest cursor stored for the run; 0 when nothing is. */
  readonly lastEventCursor: number;
  /** >= 1; 1 when unknown. */
  readonly workflowVersion: number;
  /** null: the base environment, or unknown. */
  readonly environment: RunEnvironment | null;
  /** The whole answer, for whoever hands it on with fields of his own. */
  readonly raw: UnknownRecord;
}

/** Answer of `claim`. @throws WireError */
export function readRunClaim(body: unknown): RunClaim {
  const fields = new Fields('run claim', body);
  const environment = fields.get('environment');
  return {
    run: readRunRow(fields.object('run')),
    leaseUntil: fields.integerOr('leaseUntil', undefined),
    lastEventCursor: fields.integerOr('lastEventCursor', 0),
    workflowVersion: fields.integerOr('workflowVersion', 1, { min: 1 }),
    environment: readEnvironment(environment),
    raw: fields.raw,
  };
}

/** What the program gets as its input, before its schema has a word in it (protocol/program.md 5). */
export function effectiveInput(run: RunRow): unknown {
  return run.input ?? run.triggerPayload;
}

/** Answer of `renew`. `leaseUntil` in ms, undefined when the server doesn't say. @throws WireError */
export function readRenew(body: unknown): { readonly leaseUntil: number | undefined } {
  return { leaseUntil: new Fields('run lease renewal', body).integerOr('leaseUntil', undefined) };
}

export interface RunVersion {
  /** As stored; read it with `readManifest`. */
  readonly manifest: unknown;
  readonly program: {
    readonly entry: string;
    /** SHA-256 of the archive, 64 hex digits, lower case. */
    readonly digest: string;
    /** `*` when unpinned. */
    readonly sdkVersion: string;
    /** Absolute, or relative to the base of the run's calls. */
    readonly downloadUrl: string;
  };
}

/** Answer of `version`. @throws WireError */
export function readVersion(body: unknown): RunVersion {
  const fields = new Fields('version', body);
  const program = fields.object('program');
  const digest = program.string('digest').toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(digest)) throw program.wrong('digest', 'must be a SHA-256 of 64 hex digits');
  return {
    manifest: fields.get('manifest'),
    program: {
      // An empty entry is a refusal with a code of its own, made where entries are resolved.
      entry: program.string('entry', { min: 0 }),
      digest,
      sdkVersion: program.stringOr('sdkVersion', '*'),
      downloadUrl: program.string('downloadUrl'),
    },
  };
}

/** Answer of `cancel`. @throws WireError */
export function readCancel(body: unknown): { readonly cancelRequested: boolean } {
  return { cancelRequested: new Fields('cancel', body).boolean('cancelRequested') };
}

/** Answer of `credit`. @throws WireError */
export function readCredit(body: unknown): { readonly funded: boolean } {
  return { funded: new Fields('credit', body).boolean('funded') };
}

/** Answer of `secrets/resolve`; an empty value is one. @throws WireError that never quotes the value */
export function readSecret(body: unknown): { readonly value: string } {
  return { value: new Fields('secret', body).string('value', { min: 0 }) };
}

function readRunRow(run: Fields): RunRow {
  const kind = run.get('triggerKind');
  const config = run.get('config');
  return {
    id: run.string('id'),
    orgId: run.string('orgId'),
    workflowId: run.string('workflowId'),
    workflowVersionId: run.stringOr('workflowVersionId', null),
    environmentId: run.stringOr('environmentId', null),
    attempt: run.integerOr('attempt', 1, { min: 1 }),
    actor: readActor(run.object('actor')),
    triggerKind: kind === 'cron' || kind === 'webhook' ? kind : 'manual',
    triggerRequest: readTriggerRequest(run.get('triggerRequest')),
    input: run.get('input') ?? null,
    triggerPayload: run.get('triggerPayload') ?? null,
    config: isRecord(config) ? config : null,
    createdAt: run.integer('createdAt'),
    startedAt: run.integerOr('startedAt', null),
  };
}

const ACTOR_FIELDS: Readonly<Record<string, readonly string[]>> = {
  user: ['user_id'],
  workflow: ['parent_run_id', 'parent_workflow_id', 'user_id'],
  webhook: ['source'],
  cron: ['rule'],
  event: ['subscription_id', 'source_run_id', 'source_workflow_id', 'event_type', 'event_chain_depth'],
};

function readActor(actor: Fields): Actor {
  const type = actor.string('type');
  const known = Object.hasOwn(ACTOR_FIELDS, type) ? ACTOR_FIELDS[type] : undefined;
  if (known === undefined) return { ...actor.raw, type };
  const present = known.filter((field) => actor.get(field) !== undefined);
  return { type, ...Object.fromEntries(present.map((field) => [field, actor.get(field)])) };
}

/** Bounds are those of the context that the program's SDK checks (protocol/program.md 6). */
function readTriggerRequest(value: unknown): TriggerRequest | null {
  if (!isRecord(value)) return null;
  const { method, path, query, headers } = value;
  if (typeof method !== 'string' || method.length < 1 || method.length > 16) return null;
  if (typeof path !== 'string' || path.length > 2_048) return null;
  return isStringMap(query) && isStringMap(headers) ? { method, path, query, headers } : null;
}

function readEnvironment(value: unknown): RunEnvironment | null {
  if (!isRecord(value)) return null;
  const { id, name } = value;
  return typeof id === 'string' && id !== '' && typeof name === 'string' ? { id, name } : null;
}
