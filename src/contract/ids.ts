// Ids are opaque on the wire and become directories here. This guards the step between: a run id of `..` once deleted
// a whole work directory (R13), and two scopes that share a path share their data. Knows no file system: it only says
// which text may stand between two separators (protocol/pool.md 1, 10.2; test/vectors/scope-dir.json).

import { createHash } from 'node:crypto';
import { OperatorError } from './operatorError.js';

/** Longest id of the wire, in characters (protocol/pool.md 1). */
export const MAX_ID_CHARS = 128;

/** Longest path segment, in bytes of UTF-8; file systems stop at 255, and names get suffixes. */
export const MAX_SEGMENT_BYTES = 200;

/**
 * Whether the text can be one segment of a path, on its own and whatever stands around it: not empty, no separator, no
 * `.` or `..`, no control character, no half of a surrogate pair (two such names would become one), at most 200 bytes.
 */
export function isSafePathSegment(text: string): boolean {
  if (text === '' || text === '.' || text === '..') return false;
  if (/[/\\\u0000-\u001f\u007f]/.test(text)) return false;
  return !hasLoneSurrogate(text) && Buffer.byteLength(text) <= MAX_SEGMENT_BYTES;
}

/**
 * The id itself, when it can be one segment of a path.
 *
 * @throws OperatorError `UNSAFE_ID`
 */
export function pathSegment(id: string): string {
  if (isSafePathSegment(id)) return id;
  throw unsafe(
    'an id',
    id,
    'it must be a single path segment of at most 200 bytes, without / \\ or control characters',
  );
}

/**
 * A workspace key as one path segment: `[A-Za-z0-9._-]` kept, the rest percent-encoded, a SHA-256 name when that is
 * longer than 200 bytes (protocol/pool.md 10.2).
 *
 * @throws OperatorError `UNSAFE_ID` for an empty key, `.`, `..` and half a surrogate pair
 */
export function encodeKeySegment(key: string): string {
  if (key === '' || key === '.' || key === '..' || hasLoneSurrogate(key))
    throw unsafe('a workspace key', key, 'it must not be empty, . or .., and must be valid Unicode');
  const encoded = Array.from(Buffer.from(key), encodeByte).join('');
  return encoded.length <= MAX_SEGMENT_BYTES ? encoded : createHash('sha256').update(key).digest('hex');
}

/** The parts of a claim that name a persisted workspace scope. */
export interface Scope {
  readonly workflowId: string;
  /** null: the base environment. */
  readonly environmentId: string | null;
  /** null: the workspace has no key. */
  readonly workspaceKey: string | null;
}

/**
 * The scope's directory, relative to the root of persisted scopes, with `/` between segments.
 *
 * @throws OperatorError `UNSAFE_ID` when a part is not a safe segment, or an environment has the name of the base scope
 */
export function scopePath({ workflowId, environmentId, workspaceKey }: Scope): string {
  if (environmentId === BASE_ENVIRONMENT)
    throw unsafe('an environment id', environmentId, 'it is the name of the scope without an environment');
  const environment = environmentId === null ? BASE_ENVIRONMENT : pathSegment(environmentId);
  const scope = `${pathSegment(workflowId)}/${environment}`;
  return workspaceKey === null ? scope : `${scope}/keys/${encodeKeySegment(workspaceKey)}`;
}

const BASE_ENVIRONMENT = '_base';

function encodeByte(byte: number): string {
  const character = String.fromCharCode(byte);
  return /[A-Za-z0-9._-]/.test(character)
    ? character
    : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

function unsafe(what: string, text: string, why: string): OperatorError {
  const shown = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
  return new OperatorError(
    'UNSAFE_ID',
    `${what} from the control plane can't be used as a directory: ${shown}; ${why}`,
  );
}
