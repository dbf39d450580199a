// A version's manifest as far as a runner acts on it (protocol/program.md 4), read tolerantly and without a validation
// library. The reference refuses a run for one unknown key; here a field that we act on must be right (a budget that
// is misread is no budget), a malformed one that we don't need is a warning, and unknown ones are nobody's business.

import { Fields, isStringMap } from './fields.js';
import { isRecord, type UnknownRecord } from './json.js';

export interface Manifest {
  /** JSON Schema of the input; null when there is none. */
  readonly inputSchema: UnknownRecord | null;
  readonly outputSchema: UnknownRecord | null;
  readonly workspace: {
    /** true: everything; a list: those paths, relative to the workspace; false: only memory directories. */
    readonly persist: boolean | readonly string[];
  };
  /** null: no cap. */
  readonly budget: {
    readonly maxTokens: number | null;
    readonly maxUsd: number | null;
    readonly maxComputeSeconds: number | null;
  };
  /** Values may be references to secrets (`secretReference`). */
  readonly env: Readonly<Record<string, string>>;
  /** Default true. */
  readonly recording: boolean;
  readonly permissions: {
    /** Names of granted secrets. */
    readonly secrets: readonly string[];
    /** Default false. */
    readonly idToken: boolean;
  };
}

export interface ManifestRead {
  readonly manifest: Manifest;
  /** For the log of the run: fields that were ignored, and why. */
  readonly warnings: readonly string[];
}

/** @throws WireError for a field that the run depends on and that can't be read */
export function readManifest(json: unknown): ManifestRead {
  const fields = new Fields('manifest', json);
  const warnings: string[] = [];
  return {
    manifest: {
      inputSchema: readSchema(fields, 'input_schema'),
      outputSchema: readSchema(fields, 'output_schema'),
      workspace: { persist: readPersist(fields.optionalObject('workspace')) },
      budget: readBudget(fields.optionalObject('budget')),
      env: readEnv(fields),
      recording: fields.get('recording') === undefined ? true : fields.boolean('recording'),
      permissions: readPermissions(fields, warnings),
    },
    warnings,
  };
}

/** The name in a value like `${{ secrets.NAME }}`; null when the value is ordinary text. */
export function secretReference(value: string): string | null {
  return /^\$\{\{\s*secrets\.([A-Za-z0-9_-]{1,120})\s*\}\}$/.exec(value)?.[1] ?? null;
}

/** A path below the workspace: no leading `/`, no backslash, no empty, `.` or `..` segment. */
export function isRelativePath(path: string): boolean {
  return (
    !path.includes('\\') && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
  );
}

function readSchema(fields: Fields, name: string): UnknownRecord | null {
  return fields.optionalObject(name)?.raw ?? null;
}

function readPersist(workspace: Fields | null): boolean | readonly string[] {
  const persist = workspace?.get('persist');
  if (workspace === null || persist === undefined) return false;
  if (typeof persist === 'boolean') return persist;
  if (isRelativePaths(persist)) return persist;
  throw workspace.wrong('persist', 'must be true, false or a list of relative paths');
}

function isRelativePaths(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((path) => typeof path === 'string' && isRelativePath(path));
}

function readBudget(budget: Fields | null): Manifest['budget'] {
  return {
    maxTokens: readCap(budget, 'max_tokens', Number.isSafeInteger),
    maxUsd: readCap(budget, 'max_usd', Number.isFinite),
    maxComputeSeconds: readCap(budget, 'max_compute_seconds', Number.isSafeInteger),
  };
}

function readCap(budget: Fields | null, name: string, isNumber: (value: unknown) => boolean): number | null {
  const cap = budget?.get(name);
  if (budget === null || cap === undefined) return null;
  if (typeof cap === 'number' && cap > 0 && isNumber(cap)) return cap;
  throw budget.wrong(
    name,
    isNumber === Number.isFinite ? 'must be a number above 0' : 'must be an integer above 0',
  );
}

function readEnv(fields: Fields): Readonly<Record<string, string>> {
  const env = fields.get('env') ?? {};
  if (!isStringMap(env)) throw fields.wrong('env', 'must be an object of strings');
  for (const [key, value] of Object.entries(env)) {
    // Set as it stands, such a value would look like a secret and be none.
    if (value.includes('${{') && secretReference(value) === null)
      throw fields.wrong(
        `env.${key}`,
        'must be exactly one secret reference, like ${{ secrets.NAME }}, or plain text',
      );
  }
  return env;
}

function readPermissions(fields: Fields, warnings: string[]): Manifest['permissions'] {
  const permissions = fields.get('permissions') ?? {};
  if (!isRecord(permissions)) {
    warnings.push('permissions is not an object and is ignored');
    return { secrets: [], idToken: false };
  }
  const { secrets = [], id_token } = permissions;
  const entries: readonly unknown[] = Array.isArray(secrets) ? secrets : [];
  const names = entries
    .map((entry) => (isRecord(entry) ? entry['name'] : undefined))
    .filter((name) => typeof name === 'string');
  if (!Array.isArray(secrets) || names.length !== entries.length)
    warnings.push('permissions.secrets has entries other than {name} and they are ignored');
  return { secrets: names, idToken: id_token === 'write' };
}
