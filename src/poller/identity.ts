// The identity files of `protocol/pool.md` 11: which runner this machine is, one file for a control plane and pool, as
// the reference daemon writes them, so that an enrolled machine just works. Guards against half-written files, tokens
// readable by others, and a start that polls with a broken identity. Several identities for one pool come later.
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { encodeKeySegment, isSafePathSegment } from '../contract/ids.js';
import { OperatorError } from '../contract/operatorError.js';

/** A registered runner. */
export interface Identity {
  readonly runnerId: string;
  /** The secret. */
  readonly runnerToken: string;
  /** As given when it was registered. */
  readonly controlPlaneUrl: string;
  readonly pool: string;
  /** Display name. */
  readonly name: string;
  readonly createdAtMs: number;
  /** Kept when another program wrote it. */
  readonly org?: string | undefined;
}

export interface IdentityPlace {
  /** The identity directory. */
  readonly dir: string;
  readonly controlPlaneUrl: string;
  readonly pool: string;
}

const identityFileSchema = z.object({
  runner_id: z.string().min(1),
  runner_token: z.string().min(1),
  control_plane_url: z.url(),
  pool: z.string().min(1),
  org: z.string().optional(),
  name: z.string().min(1),
  created_at: z.number().int().nonnegative(),
});

/** Where identities live unless told otherwise; the reference's place. */
export function defaultIdentityDir(): string {
  return join(homedir(), '.boardwalk', 'runner');
}

/** @throws OperatorError `CONTROL_PLANE_URL` */
export function identityPath({ dir, controlPlaneUrl, pool }: IdentityPlace): string {
  return join(dir, `${hostPart(controlPlaneUrl)}--${poolPart(pool)}.json`);
}

/**
 * Reads the identity for a control plane and pool. Unknown keys are accepted.
 *
 * @throws OperatorError `IDENTITY_MISSING`, `IDENTITY_UNREADABLE`, `IDENTITY_INVALID`, `CONTROL_PLANE_URL`
 */
export async function readIdentity(place: IdentityPlace): Promise<Identity> {
  const path = identityPath(place);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    if (isErrno(cause, 'ENOENT')) throw await missing(place, path);
    const reason = cause instanceof Error ? cause.message : 'unknown reason';
    throw new OperatorError('IDENTITY_UNREADABLE', `The identity file ${path} can't be read: ${reason}.`, {
      hint: 'Start as the user who registered this machine, or name another directory with --identity-dir.',
      cause,
    });
  }
  const identity = parseIdentity(text, path, place);
  await ownerOnly(path);
  return identity;
}

/**
 * Saves an identity: directory 0700, file 0600, whole or not at all.
 *
 * @returns the file's path
 * @throws OperatorError `IDENTITY_UNWRITABLE`
 */
export async function saveIdentity(dir: string, identity: Identity): Promise<string> {
  const path = identityPath({ dir, controlPlaneUrl: identity.controlPlaneUrl, pool: identity.pool });
  const draft = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  const content = {
    runner_id: identity.runnerId,
    runner_token: identity.runnerToken,
    control_plane_url: identity.controlPlaneUrl,
    pool: identity.pool,
    org: identity.org,
    name: identity.name,
    created_at: identity.createdAtMs,
  };
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    if (process.platform !== 'win32') await chmod(dir, 0o700);
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.writeFile(`${JSON.stringify(content, null, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (cause) {
    await rm(draft, { force: true }).catch(() => undefined);
    const reason = cause instanceof Error ? cause.message : 'unknown reason';
    throw new OperatorError('IDENTITY_UNWRITABLE', `The identity file ${path} can't be written: ${reason}.`, {
      hint: 'Name a directory that you may write to with --identity-dir.',
      cause,
    });
  }
  return path;
}

/** Who this machine is already at a control plane, in whichever pool; broken files are named with a null. */
export async function identitiesAt(
  place: Omit<IdentityPlace, 'pool'>,
): Promise<readonly { readonly path: string; readonly runnerId: string | null }[]> {
  const prefix = `${hostPart(place.controlPlaneUrl)}--`;
  const pools = await poolsBeside(place);
  return Promise.all(
    pools.map(async (pool) => {
      const path = join(place.dir, `${prefix}${pool}.json`);
      const text = await readFile(path, 'utf8').catch(() => '');
      try {
        return { path, runnerId: parseIdentity(text, path, { ...place, pool }).runnerId };
      } catch {
        return { path, runnerId: null };
      }
    }),
  );
}

function parseIdentity(text: string, path: string, place: IdentityPlace): Identity {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // The parser's error quotes the text, and with it perhaps the token.
    throw invalid(path, 'it is not JSON', place);
  }
  const parsed = identityFileSchema.safeParse(json);
  if (!parsed.success) {
    const fields = [...new Set(parsed.error.issues.map((issue) => issue.path.join('.') || 'the whole file'))];
    throw invalid(path, `missing or wrong: ${fields.join(', ')}`, place);
  }
  const { runner_id, runner_token, control_plane_url, pool, org, name, created_at } = parsed.data;
  return {
    runnerId: runner_id,
    runnerToken: runner_token,
    controlPlaneUrl: control_plane_url,
    pool,
    name,
    createdAtMs: created_at,
    ...(org === undefined ? {} : { org }),
  };
}

function invalid(path: string, problem: string, place: IdentityPlace): OperatorError {
  return new OperatorError('IDENTITY_INVALID', `The identity file ${path} can't be used: ${problem}.`, {
    hint: `Register this machine again: ${registerCommand(place)} --force.`,
  });
}

async function missing(place: IdentityPlace, path: string): Promise<OperatorError> {
  const others = await poolsBeside(place);
  const known = others.length === 0 ? '' : ` This machine is registered for: ${others.join(', ')} (--pool).`;
  return new OperatorError(
    'IDENTITY_MISSING',
    `This machine is not registered with ${place.controlPlaneUrl} for the pool "${place.pool}" (no file ${path}).`,
    { hint: `Register it first: ${registerCommand(place)}.${known}` },
  );
}

/** The file names, without their ending, of all pools at a control plane. */
async function poolsBeside({
  dir,
  controlPlaneUrl,
}: Omit<IdentityPlace, 'pool'>): Promise<readonly string[]> {
  const prefix = `${hostPart(controlPlaneUrl)}--`;
  const names = await readdir(dir).catch(() => []);
  return names
    .filter((name) => name.startsWith(prefix) && name.endsWith('.json'))
    .map((name) => name.slice(prefix.length, -'.json'.length))
    .sort();
}

function registerCommand({ controlPlaneUrl, dir }: IdentityPlace): string {
  const where = dir === defaultIdentityDir() ? '' : ` --identity-dir ${dir}`;
  return `boardwalk-fleet register --url ${controlPlaneUrl} --token <registration token>${where}`;
}

/** Kubernetes mounts secrets read-only, and another user may own the file: reading it is what counts. */
async function ownerOnly(path: string): Promise<void> {
  if (process.platform !== 'win32') await chmod(path, 0o600).catch(() => undefined);
}

function hostPart(controlPlaneUrl: string): string {
  if (!URL.canParse(controlPlaneUrl)) {
    throw new OperatorError('CONTROL_PLANE_URL', 'The control plane URL is not an absolute URL.', {
      hint: 'Give it as in http://127.0.0.1:4810.',
    });
  }
  return new URL(controlPlaneUrl).host.replace(/[^A-Za-z0-9.-]/g, '_');
}

function poolPart(pool: string): string {
  return isSafePathSegment(pool) ? pool : encodeKeySegment(pool);
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
