// Calls that are passed on as they are, with the run's real token in place of the sandbox's bearer. Retries within the
// deadline of one call happen in the platform's client; its answer, good or bad, is the sandbox's. Values that the
// platform gives out in confidence are remembered for redaction before the sandbox has them.

import { AGENT_HEADER } from '../../contract/fleetCalls.js';
import { isRecord, ownMember } from '../../contract/json.js';
import type { RunClient } from '../../platform/runClient.js';
import { Refusal } from './answers.js';
import type { Call } from './calls.js';
import type { RoutedCall } from './routes.js';
import { type PassedAnswer, passedHeaders, unreachable } from './upstream.js';

/** Where a confidential value stands in the answer (protocol/run-control.md section 8). */
const SECRET_MEMBERS: Readonly<Record<string, string>> = {
  'secrets/resolve': 'value',
  'oidc/token': 'token',
  'mcp/token': 'accessToken',
};

export interface RelayDependencies {
  readonly runClient: Pick<RunClient, 'forward'>;
  /** One call of a sandbox, retries included. */
  readonly deadlineMs: number;
  readonly onSecret: (value: string) => void;
}

/** The platform's answer to one call. @throws Refusal 502 or 504 when there was none; CallEnded */
export async function forward(
  call: Call,
  route: RoutedCall,
  body: Buffer | undefined,
  deps: RelayDependencies,
): Promise<PassedAnswer> {
  const answer = await deps.runClient.forward({
    method: route.method,
    suffix: route.suffix,
    query: route.query,
    // An empty POST goes without a body and its content type (protocol/run-control.md section 1).
    ...(body === undefined || body.byteLength === 0 ? {} : { body }),
    headers: forwardedHeaders(call, body),
    signal: call.signal,
    deadlineMs: deps.deadlineMs,
  });
  call.throwIfEnded();
  if (answer.outcome === 'failed') throw unreachable(answer.error);
  return answer;
}

export async function relay(
  call: Call,
  route: RoutedCall,
  body: Buffer | undefined,
  deps: RelayDependencies,
): Promise<void> {
  const answer = await forward(call, route, body, deps);
  call.answer(answer.status, answer.body, passedHeaders(answer.headers));
}

/** As {@link relay}, for an answer that must not reach the sandbox before its secret is known here. */
export async function relaySecret(
  call: Call,
  route: RoutedCall,
  body: Buffer,
  deps: RelayDependencies,
): Promise<void> {
  const answer = await forward(call, route, body, deps);
  if (answer.status === 200) {
    const value = memberOf(answer.body, SECRET_MEMBERS[route.suffix] ?? '');
    if (value === undefined) {
      throw new Refusal(502, 'CONTROL_PLANE_INVALID', "The control plane's answer can't be used.");
    }
    deps.onSecret(value);
  }
  call.answer(answer.status, answer.body, passedHeaders(answer.headers));
}

/** What the sandbox says about its body and the answer it takes; its connection and its bearer are its own affair. */
export function forwardedHeaders(call: Call, body: Buffer | undefined): Record<string, string> {
  const { accept, 'content-type': contentType, [AGENT_HEADER]: agent } = call.req.headers;
  return {
    accept: accept ?? 'application/json',
    ...(typeof agent === 'string' ? { [AGENT_HEADER]: agent } : {}),
    ...(body === undefined || body.byteLength === 0
      ? {}
      : { 'content-type': contentType ?? 'application/json' }),
  };
}

function memberOf(body: Buffer, name: string): string | undefined {
  try {
    const json: unknown = JSON.parse(body.toString('utf8'));
    const value = isRecord(json) ? ownMember(json, name) : undefined;
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
