// How the addresses of calls are made from a configured base and ids of the wire. Guards against an id or a sandbox's
// path that climbs out of the place where it was put (R13): the bearer would be sent to another endpoint.
import { OperatorError } from '../contract/operatorError.js';

export const JSON_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json',
  accept: 'application/json',
};

/**
 * A control plane's address as a base for paths: trailing slashes removed (`protocol/pool.md` 1).
 *
 * @throws OperatorError `CONTROL_PLANE_URL` unless it is an absolute http(s) URL without credentials, query or fragment
 */
export function controlPlaneBase(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  const problem =
    parsed === null || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')
      ? 'is not an absolute http or https URL'
      : parsed.username !== '' || parsed.password !== ''
        ? 'contains a user name or password'
        : parsed.search !== '' || parsed.hash !== ''
          ? 'contains a query or fragment'
          : null;
  if (parsed === null || problem !== null) {
    // A URL with a password must not be repeated in a message.
    const shown =
      parsed === null || parsed.username + parsed.password !== '' ? 'The control plane URL' : `"${url}"`;
    throw new OperatorError('CONTROL_PLANE_URL', `${shown} ${problem ?? 'is not a URL'}.`, {
      hint: 'Give the origin and optional path, e.g. https://boardwalk.example or http://127.0.0.1:4810.',
    });
  }
  return `${parsed.origin}${parsed.pathname}`.replace(/\/+$/, '');
}

/** An opaque id as one path segment; null for the ids that URLs read as steps (`.`, `..`) or as nothing. */
export function encodeSegment(id: string): string | null {
  if (id === '' || id === '.' || id === '..' || /\p{Surrogate}/u.test(id)) return null;
  return encodeURIComponent(id);
}

/**
 * The address of `suffix` below `prefix`, or null when it would lie elsewhere.
 *
 * @param prefix absolute URL that ends in `/`
 * @param suffix relative path, already percent-encoded, without query
 * @param query text after `?`, if any
 */
export function below(prefix: string, suffix: string, query?: string): string | null {
  if (/[?#\\]/.test(suffix) || !URL.canParse(prefix + suffix)) return null;
  const base = new URL(prefix);
  // The URL parser resolves dot segments, in clear and percent-encoded; what it leaves is what would be asked for.
  const url = new URL(prefix + suffix);
  if (url.origin !== base.origin || !url.pathname.startsWith(base.pathname)) return null;
  if (query !== undefined && query !== '') url.search = query;
  return url.href;
}
