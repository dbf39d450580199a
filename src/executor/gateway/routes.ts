// Which run-control paths exist (protocol/run-control.md section 2), and what the door does with each. A table, so
// that a path which nobody thought of is a 404 here and never reaches the control plane with the run's real token.

import { Refusal } from './answers.js';

/** How a route is answered: by the executor, by a handler of its own, or by passing it on. */
export type RouteKind =
  | 'claim'
  | 'renew'
  | 'cancel'
  | 'credit'
  | 'version'
  | 'telemetry'
  | 'finalize'
  | 'inference'
  | 'secret'
  | 'relay'
  | 'program'
  | 'watch';

export interface Route {
  readonly method: 'GET' | 'POST';
  readonly kind: RouteKind;
}

/** Path segments below `/runner/v1/runs/{runId}/`; `*` stands for one percent-encoded id. */
const TABLE: Readonly<Record<string, readonly Route[]>> = {
  claim: [{ method: 'POST', kind: 'claim' }],
  renew: [{ method: 'POST', kind: 'renew' }],
  version: [{ method: 'GET', kind: 'version' }],
  cancel: [{ method: 'GET', kind: 'cancel' }],
  credit: [{ method: 'GET', kind: 'credit' }],
  usage: [{ method: 'POST', kind: 'relay' }],
  'usage/tokens': [{ method: 'POST', kind: 'relay' }],
  telemetry: [{ method: 'POST', kind: 'telemetry' }],
  finalize: [{ method: 'POST', kind: 'finalize' }],
  'secrets/resolve': [{ method: 'POST', kind: 'secret' }],
  inference: [{ method: 'POST', kind: 'inference' }],
  'inference/providers': [{ method: 'GET', kind: 'relay' }],
  inputs: [{ method: 'POST', kind: 'relay' }],
  'inputs/*': [{ method: 'GET', kind: 'relay' }],
  children: [{ method: 'POST', kind: 'relay' }],
  'children/*': [{ method: 'GET', kind: 'relay' }],
  schedules: [{ method: 'POST', kind: 'relay' }],
  artifacts: [
    { method: 'POST', kind: 'relay' },
    { method: 'GET', kind: 'relay' },
  ],
  'artifacts/presign': [{ method: 'POST', kind: 'relay' }],
  'artifacts/commit': [{ method: 'POST', kind: 'relay' }],
  'artifacts/*/signed-url': [{ method: 'POST', kind: 'relay' }],
  'workspace/reserve': [{ method: 'POST', kind: 'relay' }],
  'workspace/manifest/read': [{ method: 'POST', kind: 'relay' }],
  'workspace/manifest/write': [{ method: 'POST', kind: 'relay' }],
  'workspace/packs/exists': [{ method: 'POST', kind: 'relay' }],
  'workspace/packs/presign': [{ method: 'POST', kind: 'relay' }],
  'workspace/packs/delete': [{ method: 'POST', kind: 'relay' }],
  'workspace/hydrate-url': [{ method: 'POST', kind: 'relay' }],
  'workspace/persist-url': [{ method: 'POST', kind: 'relay' }],
  'oidc/token': [{ method: 'POST', kind: 'secret' }],
  'mcp/token': [{ method: 'POST', kind: 'secret' }],
  'tools/web_search': [{ method: 'POST', kind: 'relay' }],
  liveview: [{ method: 'POST', kind: 'relay' }],
  'liveview/wanted': [{ method: 'GET', kind: 'relay' }],
  '_fleet/watch': [{ method: 'GET', kind: 'watch' }],
  '_fleet/program': [{ method: 'GET', kind: 'program' }],
};

/** Patterns with a `*`, split once. */
const WILDCARDS = Object.entries(TABLE)
  .filter(([pattern]) => pattern.includes('*'))
  .map(([pattern, routes]) => ({ segments: pattern.split('/'), routes }));

export interface RoutedCall {
  readonly kind: RouteKind;
  readonly method: 'GET' | 'POST';
  /** Re-encoded, so that what goes upstream is one clean path whatever the sandbox wrote. */
  readonly suffix: string;
  /** Without the question mark; '' when there is none. */
  readonly query: string;
}

/**
 * Finds the route of one request.
 *
 * @throws Refusal 400 for a path that can't be decoded, 403 for another run's, 404 for an unknown one, 405 for a
 *   known one with another method.
 */
export function routeOf(runId: string, method: string | undefined, url: string | undefined): RoutedCall {
  const [path, query] = splitOnce(url ?? '', '?');
  const [empty, runner, v1, runs, run, ...rest] = path.split('/').map(decodeSegment);
  if (empty !== '' || runner !== 'runner' || v1 !== 'v1' || runs !== 'runs' || run === undefined)
    throw unknownPath();
  if (run !== runId) throw new Refusal(403, 'FORBIDDEN', 'This door belongs to another run.');
  const routes = routesOf(rest);
  if (routes === undefined) throw unknownPath();
  const route = routes.find((candidate) => candidate.method === method);
  if (route === undefined) {
    throw new Refusal(405, 'METHOD_NOT_ALLOWED', 'This run-control path has another method.', {
      allow: routes.map((known) => known.method).join(', '),
    });
  }
  return { kind: route.kind, method: route.method, suffix: rest.map(encodeURIComponent).join('/'), query };
}

function routesOf(segments: readonly string[]): readonly Route[] | undefined {
  const exact = segments.join('/');
  // An id may itself contain '*' or '/'; only a path of plain segments can be looked up as text.
  if (Object.hasOwn(TABLE, exact) && !exact.includes('*') && exact.split('/').length === segments.length) {
    return TABLE[exact];
  }
  return WILDCARDS.find(
    (wildcard) =>
      wildcard.segments.length === segments.length &&
      wildcard.segments.every((expected, index) =>
        expected === '*' ? isIdSegment(segments[index] ?? '') : expected === segments[index],
      ),
  )?.routes;
}

/** A dot segment would be resolved away by whoever builds a URL from it, and name another path (R13). */
function isIdSegment(segment: string): boolean {
  return segment !== '' && segment !== '.' && segment !== '..';
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new Refusal(400, 'BAD_PATH', 'The path is not valid percent-encoding.');
  }
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function unknownPath(): Refusal {
  return new Refusal(404, 'NOT_FOUND', 'There is no such run-control path.');
}
