// Which path leads where: a tree of segments, so that a request costs its own length and not the number of routes.
// A path that nobody knows is 404, a known one with another method 405; both are refusals in JSON like all others.

import { refused, type Answer } from './answer.js';
import type { Incoming } from './incoming.js';

export type Method = 'GET' | 'POST';

export interface Route {
  readonly method: Method;
  /** Segments in braces are variable: `/runner/v1/runs/{run_id}/claim`. */
  readonly path: string;
  /** Longest body in bytes. Default 64 KiB. */
  readonly bodyBytes?: number;
  readonly answer: (request: Incoming) => Answer | Promise<Answer>;
}

export interface FoundRoute {
  /** Method and path as they stand in the route; `unknown` for none. */
  readonly name: string;
  readonly bodyBytes: number;
  readonly params: readonly string[];
  readonly answer: Route['answer'];
}

/** Everything but telemetry, results, prompts and programs is far below. */
const DEFAULT_BODY_BYTES = 64 * 1024;

interface Node {
  readonly fixed: Map<string, Node>;
  variable: Node | undefined;
  readonly routes: Map<string, Route>;
}

export class Router {
  readonly #root = emptyNode();

  constructor(routes: readonly Route[]) {
    for (const route of routes) this.#add(route);
  }

  find(method: string, url: string): FoundRoute {
    const end = url.indexOf('?');
    const segments = (end === -1 ? url : url.slice(0, end)).split('/');
    const params: string[] = [];
    let node: Node | undefined = this.#root;
    for (let index = 1; index < segments.length && node !== undefined; index += 1) {
      const segment: string = segments[index] ?? '';
      const next: Node | undefined = node.fixed.get(segment);
      if (next === undefined && node.variable !== undefined) {
        const value = decoded(segment);
        if (value === null)
          return nowhere(refused(400, 'BAD_REQUEST', 'The path is not valid percent-encoding.'));
        params.push(value);
      }
      node = next ?? node.variable;
    }
    if (node === undefined || node.routes.size === 0)
      return nowhere(refused(404, 'NOT_FOUND', 'This control plane has no such path.'));
    const route = node.routes.get(method);
    if (route === undefined) {
      const known = [...node.routes.keys()].join(', ');
      return nowhere(refused(405, 'METHOD_NOT_ALLOWED', `This path takes ${known}.`));
    }
    return {
      name: `${route.method} ${route.path}`,
      bodyBytes: route.bodyBytes ?? DEFAULT_BODY_BYTES,
      params,
      answer: route.answer,
    };
  }

  #add(route: Route): void {
    let node = this.#root;
    for (const segment of route.path.split('/').slice(1)) {
      if (segment.startsWith('{')) {
        node.variable ??= emptyNode();
        node = node.variable;
      } else {
        const next = node.fixed.get(segment) ?? emptyNode();
        node.fixed.set(segment, next);
        node = next;
      }
    }
    node.routes.set(route.method, route);
  }
}

function emptyNode(): Node {
  return { fixed: new Map(), variable: undefined, routes: new Map() };
}

function nowhere(answer: Answer): FoundRoute {
  return { name: 'unknown', bodyBytes: DEFAULT_BODY_BYTES, params: [], answer: () => answer };
}

/** `null` for broken percent-encoding; an empty segment is never a value. */
function decoded(segment: string): string | null {
  try {
    return segment.includes('%') ? decodeURIComponent(segment) : segment;
  } catch {
    return null;
  }
}
