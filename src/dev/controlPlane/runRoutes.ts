// The run-control wire (protocol/run-control.md) as far as it goes today. Keys that it doesn't know are accepted, every
// call may come twice, and a token opens its own run only. A path that is not in this table is a 404: children, inputs,
// schedules, artifacts, tokens of others, workspaces and search are added here when they are there.

import {
  finalizeRequestSchema,
  renewRequestSchema,
  runClaimRequestSchema,
  secretRequestSchema,
  telemetryRequestSchema,
  tokenUsageRequestSchema,
  usageRequestSchema,
} from '../../contract/runControl.js';
import { json, NO_CONTENT, refused, type Answer, type WholeAnswer } from './answer.js';
import type { Incoming } from './incoming.js';
import { inferenceAnswer } from './inference.js';
import { ORG_ID } from './poolRoutes.js';
import type { Programs } from './programs.js';
import type { Route, Method } from './router.js';
import { readRows } from './rows.js';
import type { Assignment } from './run.js';
import type { RunLeases } from './runLeases.js';

export interface RunRoutesOptions {
  readonly runLeases: RunLeases;
  readonly programs: Programs;
  readonly url: () => string;
}

const MIB = 1024 * 1024;
/** protocol/run-control.md 10: the server's cap of a body; a batch or an output of more is split or refused. */
const LARGE_BODY_BYTES = 5 * MIB;
/** A whole conversation, with its attachments. */
const INFERENCE_BODY_BYTES = 64 * MIB;

type Handler = (
  request: Incoming,
  assignment: Assignment,
  options: RunRoutesOptions,
) => Answer | Promise<Answer>;

interface Endpoint {
  readonly method: Method;
  readonly suffix: string;
  readonly handler: Handler;
  readonly bodyBytes?: number;
}

const ENDPOINTS: readonly Endpoint[] = [
  { method: 'POST', suffix: 'claim', handler: claim },
  { method: 'POST', suffix: 'renew', handler: renew },
  { method: 'GET', suffix: 'version', handler: version },
  {
    method: 'GET',
    suffix: 'cancel',
    handler: (_, { run }) => json(200, { cancelRequested: run.cancelRequested }),
  },
  { method: 'GET', suffix: 'credit', handler: () => json(200, { funded: true }) },
  { method: 'POST', suffix: 'usage', handler: working(usage) },
  { method: 'POST', suffix: 'usage/tokens', handler: working(tokenUsage) },
  { method: 'POST', suffix: 'telemetry', handler: telemetry, bodyBytes: LARGE_BODY_BYTES },
  { method: 'POST', suffix: 'finalize', handler: finalize, bodyBytes: LARGE_BODY_BYTES },
  { method: 'POST', suffix: 'secrets/resolve', handler: working(secret) },
  { method: 'POST', suffix: 'inference', handler: working(inferenceAnswer), bodyBytes: INFERENCE_BODY_BYTES },
  { method: 'GET', suffix: 'inference/providers', handler: () => json(200, { providers: [] }) },
  { method: 'GET', suffix: 'liveview/wanted', handler: () => json(200, { wanted: false }) },
];

export function runRoutes(options: RunRoutesOptions): Route[] {
  const routes = ENDPOINTS.map(({ method, suffix, handler, bodyBytes }): Route => ({
    method,
    path: `/runner/v1/runs/{run_id}/${suffix}`,
    ...(bodyBytes === undefined ? {} : { bodyBytes }),
    answer: (request) => {
      const assignment = options.runLeases.withToken(request.bearer);
      if (assignment === null) return refused(401, 'UNAUTHORIZED', 'The run token is missing or unknown.');
      if (assignment.run.id !== request.params[0])
        return refused(403, 'FORBIDDEN', 'The run token belongs to another run.');
      return handler(request, assignment, options);
    },
  }));
  return [...routes, programRoute(options)];
}

/** For calls that only the attempt may make that has the run now. */
function working(handler: Handler): Handler {
  return (request, assignment, options) =>
    options.runLeases.isWorking(assignment) ? handler(request, assignment, options) : takenOver();
}

function takenOver(): WholeAnswer {
  return refused(
    403,
    'FORBIDDEN',
    'This attempt does not have the run: it was not claimed, was taken over or is over.',
  );
}

function notHeld(): WholeAnswer {
  return refused(409, 'CONFLICT', 'This worker does not hold the run.');
}

function claim(request: Incoming, assignment: Assignment, { runLeases }: RunRoutesOptions): Answer {
  const leaseUntil = runLeases.claim(assignment, request.read('claim request', runClaimRequestSchema));
  if (leaseUntil === null) return notHeld();
  const { run, attempt } = assignment;
  return json(201, {
    run: {
      id: run.id,
      orgId: ORG_ID,
      workflowId: run.plan.workflowId,
      workflowVersionId: run.plan.versionId,
      environmentId: null,
      attempt,
      actor: { type: 'user', user_id: 'user_local' },
      triggerKind: 'manual',
      triggerRequest: null,
      input: run.plan.input,
      triggerPayload: null,
      config: null,
      createdAt: run.queuedAtMs,
      startedAt: run.startedAtMs,
      status: run.status,
    },
    leaseUntil,
    lastEventCursor: run.rows.lastCursor,
    workflowVersion: 1,
    environment: null,
  });
}

function renew(request: Incoming, assignment: Assignment, { runLeases }: RunRoutesOptions): Answer {
  const leaseUntil = runLeases.renew(assignment, request.read('renew request', renewRequestSchema));
  return leaseUntil === null ? notHeld() : json(200, { leaseUntil });
}

function version(_request: Incoming, { run }: Assignment, { url }: RunRoutesOptions): Answer {
  const { program, digest, manifest } = run.plan;
  const downloadUrl = `${url()}/programs/${program.digest}`;
  return json(200, { manifest, program: { entry: program.entry, digest, sdkVersion: '*', downloadUrl } });
}

/** As a presigned address is: whoever knows the digest may read (protocol/run-control.md 5). */
function programRoute({ programs }: RunRoutesOptions): Route {
  return {
    method: 'GET',
    path: '/programs/{digest}',
    answer: (request) => {
      const body = programs.archive(request.params[0] ?? '');
      return body === undefined
        ? refused(404, 'NOT_FOUND', 'There is no such program.')
        : { status: 200, body, contentType: 'application/gzip' };
    },
  };
}

function telemetry(request: Incoming, assignment: Assignment, { runLeases }: RunRoutesOptions): Answer {
  const { frames } = request.read('telemetry request', telemetryRequestSchema);
  const rows = readRows(assignment.run.id, frames);
  return runLeases.receive(assignment, rows) ? NO_CONTENT : takenOver();
}

function finalize(request: Incoming, assignment: Assignment, { runLeases }: RunRoutesOptions): Answer {
  const accepted = runLeases.finalize(assignment, request.read('finalize request', finalizeRequestSchema));
  return accepted ? NO_CONTENT : notHeld();
}

function usage(request: Incoming, { run }: Assignment): Answer {
  const { identifier, runtimeSeconds } = request.read('usage request', usageRequestSchema);
  const { seconds } = run.usage;
  seconds.set(identifier, Math.max(runtimeSeconds, seconds.get(identifier) ?? 0));
  return NO_CONTENT;
}

function tokenUsage(request: Incoming, { run }: Assignment): Answer {
  const report = request.read('usage/tokens request', tokenUsageRequestSchema);
  const [input, output] = run.usage.tokens.get(report.identifier) ?? [0, 0];
  run.usage.tokens.set(report.identifier, [
    Math.max(report.inputTokens, input),
    Math.max(report.outputTokens, output),
  ]);
  return NO_CONTENT;
}

function secret(request: Incoming, { run }: Assignment): Answer {
  const { name } = request.read('secrets/resolve request', secretRequestSchema);
  const value = run.plan.secrets.get(name);
  if (value === undefined) return refused(404, 'NOT_FOUND', `There is no secret ${JSON.stringify(name)}.`);
  if (!run.plan.grants.has(name))
    return refused(
      403,
      'FORBIDDEN',
      `The secret ${JSON.stringify(name)} is not granted: list it under permissions.secrets.`,
    );
  return json(200, { value });
}
