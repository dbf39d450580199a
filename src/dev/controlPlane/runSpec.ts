// What somebody asks to be run, from the admin API or in this process, made into a plan. It guards against a request
// that is half understood: its fields are exact, and what is wrong with a script or a manifest is said before there is
// a run.

import { z } from 'zod';
import { isRecord, type UnknownRecord } from '../../contract/json.js';
import { secretReference } from '../../contract/manifest.js';
import { idSchema } from '../../contract/pool.js';
import { parseScript } from '../scriptedModel.js';
import type { Program, Programs } from './programs.js';
import type { RunPlan } from './run.js';
import { newId } from './tokens.js';

interface RunOptions {
  /** As the version tells it. Default: a manual trigger, and all the secrets granted. */
  readonly manifest?: UnknownRecord | undefined;
  readonly input?: unknown;
  /** Over the plain values of the manifest's `env`. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly secrets?: Readonly<Record<string, string>> | undefined;
  /** Unparsed; see `parseScript`. */
  readonly script?: unknown;
  /** Default 1. */
  readonly count?: number | undefined;
  /** Default: the pool of the control plane. */
  readonly pool?: string | undefined;
  readonly labels?: readonly string[] | undefined;
  /** The workflow's id. Default: made of the manifest's slug, else of the program's digest. */
  readonly workflow?: string | undefined;
}

export interface SourceSpec extends RunOptions {
  /** JavaScript text of the entry module. */
  readonly source: string;
}

export interface ArchiveSpec extends RunOptions {
  /** A gzip tar (protocol/program.md 1). */
  readonly archive: Uint8Array;
  /** Path inside it. */
  readonly entry: string;
  /** What the version tells instead of the archive's own; for showing what a wrong one does. */
  readonly digest?: string | undefined;
}

export type RunsSpec = SourceSpec | ArchiveSpec;

const name = z.string().min(1).max(120);
const strings = z.record(z.string().min(1), z.string());

/** Body of `POST /dev/v1/runs`. */
export const runsRequestSchema = z.strictObject({
  source: z.string(),
  manifest: z.record(z.string(), z.unknown()).optional(),
  input: z.unknown().optional(),
  env: strings.optional(),
  secrets: strings.optional(),
  script: z.array(z.unknown()).optional(),
  count: z.int().min(1).max(100_000).optional(),
  pool: name.optional(),
  labels: z.array(name).max(32).optional(),
  workflow: idSchema.optional(),
});

/** @throws OperatorError `SCRIPT_INVALID` */
export function planOf(spec: RunsSpec, programs: Programs, defaultPool: string): RunPlan {
  const { script, secrets = {}, pool = defaultPool, labels = [] } = spec;
  const manifest = spec.manifest ?? defaultManifest(Object.keys(secrets));
  const program = programOf(spec, programs, manifest);
  return {
    program,
    digest: 'digest' in spec ? (spec.digest ?? program.digest) : program.digest,
    manifest,
    grants: grantsOf(manifest),
    secrets: new Map(Object.entries(secrets)),
    env: { ...plainEnv(manifest), ...spec.env },
    input: spec.input ?? null,
    script: script === undefined ? null : parseScript(script),
    pool,
    labels,
    workflowId: spec.workflow ?? workflowIdOf(manifest, program),
    versionId: newId('wfv'),
  };
}

function programOf(spec: RunsSpec, programs: Programs, manifest: UnknownRecord): Program {
  return 'source' in spec
    ? programs.fromSource(spec.source, manifest)
    : programs.fromArchive(spec.archive, spec.entry);
}

function defaultManifest(secrets: readonly string[]): UnknownRecord {
  return {
    slug: 'inline',
    triggers: [{ kind: 'manual' }],
    ...(secrets.length > 0 ? { permissions: { secrets: secrets.map((secret) => ({ name: secret })) } } : {}),
  };
}

/** protocol/run-control.md 8.1: what `permissions.secrets` lists, and nothing else. */
function grantsOf(manifest: UnknownRecord): ReadonlySet<string> {
  const permissions = manifest['permissions'];
  const secrets: unknown = isRecord(permissions) ? permissions['secrets'] : undefined;
  const names = Array.isArray(secrets)
    ? secrets.map((secret: unknown) => (isRecord(secret) ? secret['name'] : undefined))
    : [];
  return new Set(names.filter((granted) => typeof granted === 'string'));
}

/** References to secrets never travel with a claim (protocol/program.md 3.1). */
function plainEnv(manifest: UnknownRecord): Record<string, string> {
  const env = manifest['env'];
  const plain: Record<string, string> = {};
  for (const [key, value] of Object.entries(isRecord(env) ? env : {}))
    if (typeof value === 'string' && secretReference(value) === null) plain[key] = value;
  return plain;
}

function workflowIdOf({ slug }: UnknownRecord, program: Program): string {
  const named = typeof slug === 'string' && /^[A-Za-z0-9-]{1,100}$/.test(slug);
  return named ? `wf_${slug}` : `wf_${program.digest.slice(0, 12)}`;
}
