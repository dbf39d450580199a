// Where an answer sends a call on. Guards against a body or a bearer that follows to somebody else: a registration token
// is in a body, and whoever it reaches can use it. Within an origin a call goes on as it is; to another one only what is
// fetched without a body goes, and its bearer stays behind.
import type { AnswerHeaders } from './answer.js';
import { PlatformError } from './platformError.js';

export type HttpMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** As `fetch`. */
const MAX_REDIRECTS = 20;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** One request of a call: what changes on the way. */
export interface Hop {
  readonly url: string;
  readonly method: HttpMethod;
  readonly hasBody: boolean;
  readonly hasBearer: boolean;
  /** How many redirects led here. */
  readonly nth: number;
}

export interface HopAnswer {
  readonly statusCode: number;
  readonly headers: AnswerHeaders;
}

/**
 * The next request; null when the answer is the answer; an error for a redirect that is not followed. No address in it
 * has more than its origin.
 *
 * @param endpoint what the call is named in errors
 */
export function nextHop(
  endpoint: string,
  hop: Hop,
  { statusCode, headers }: HopAnswer,
): Hop | PlatformError | null {
  const location = [headers['location']].flat()[0];
  if (!REDIRECTS.has(statusCode) || location === undefined || !URL.canParse(location, hop.url)) return null;
  const from = new URL(hop.url);
  const to = new URL(location, from);
  if (hop.nth >= MAX_REDIRECTS)
    return new PlatformError('PLATFORM_INVALID', `${endpoint}: ${from.origin} redirects without end`, {
      endpoint,
      status: statusCode,
    });
  const isSame = from.origin === to.origin;
  if (!isSame && (hop.hasBody || !isFetched(hop.method) || !/^https?:$/.test(to.protocol)))
    return new PlatformError(
      'PLATFORM_STATUS',
      `${endpoint}: the control plane at ${from.origin} answers with a redirect to ${to.origin}`,
      {
        endpoint,
        status: statusCode,
        hint: `Is --url right? What is sent is not passed on to another address; if you trust ${to.origin}, give that one.`,
      },
    );
  const becomesGet =
    (statusCode === 303 && !isFetched(hop.method)) || (statusCode < 303 && hop.method === 'POST');
  return {
    url: to.href,
    method: becomesGet ? 'GET' : hop.method,
    hasBody: hop.hasBody && !becomesGet,
    hasBearer: hop.hasBearer && isSame,
    nth: hop.nth + 1,
  };
}

function isFetched(method: HttpMethod): boolean {
  return method === 'GET' || method === 'HEAD';
}
