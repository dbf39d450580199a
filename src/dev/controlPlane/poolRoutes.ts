// The pool wire (protocol/pool.md): exact in what it takes and in what it gives, because its peers refuse an answer
// with one key too many. Runners of generation 0.2 send no declaration and get no `workspace_key`, per request.

import {
  declarationSchema,
  heartbeatRequestSchema,
  registerRequestSchema,
  type ClaimResponse,
  type Offer,
} from '../../contract/pool.js';
import { isRecord } from '../../contract/json.js';
import { json, NO_CONTENT, refused, type Answer } from './answer.js';
import type { Assignments } from './assignments.js';
import type { Incoming } from './incoming.js';
import type { Route } from './router.js';
import type { Assignment, Holder } from './run.js';
import type { RunLeases } from './runLeases.js';
import type { Runner, Runners } from './runners.js';
import type { Runs } from './runs.js';

export interface PoolRoutesOptions {
  readonly runners: Runners;
  readonly runs: Runs;
  readonly assignments: Assignments;
  readonly runLeases: RunLeases;
  /** The address of this control plane, once it is known. */
  readonly url: () => string;
}

export const ORG_ID = 'org_local';

/** A hint of protocol/pool.md 3 for clients that don't hold their polls. */
const POLL_INTERVAL_SECONDS = 5;

export function poolRoutes(options: PoolRoutesOptions): Route[] {
  const { runners } = options;
  const asRunner =
    (answer: (request: Incoming, runner: Runner) => Answer | Promise<Answer>): Route['answer'] =>
    (request) => {
      const runner = runners.withToken(request.bearer);
      if (runner !== null) return answer(request, runner);
      return refused(
        401,
        'UNAUTHORIZED',
        'The runner token is unknown or was revoked: register this machine again.',
      );
    };
  return [
    { method: 'POST', path: '/runner/v1/register', answer: (request) => register(request, options) },
    { method: 'POST', path: '/runner/v1/pool/poll', answer: asRunner((...args) => poll(...args, options)) },
    {
      method: 'POST',
      path: '/runner/v1/pool/assignments/{assignment_id}/claim',
      answer: asRunner((...args) => claim(...args, options)),
    },
    {
      method: 'POST',
      path: '/runner/v1/pool/heartbeat',
      answer: asRunner((...args) => heartbeat(...args, options)),
    },
    {
      method: 'POST',
      path: '/runner/v1/pool/deregister',
      answer: asRunner((_request, runner) => {
        runners.deregister(runner);
        options.runs.dispatch.releaseAll(runner);
        return NO_CONTENT;
      }),
    },
  ];
}

function register(request: Incoming, { runners, url }: PoolRoutesOptions): Answer {
  const runner = runners.register(request.read('register request', registerRequestSchema));
  if (runner === null)
    return refused(401, 'UNAUTHORIZED', 'The registration token is unknown, spent or older than an hour.');
  return json(201, {
    runner_id: runner.id,
    pool: runner.pool,
    runner_token: runner.token,
    poll: { url: `${url()}/runner/v1/pool/poll`, interval_seconds: POLL_INTERVAL_SECONDS },
  });
}

async function poll(
  request: Incoming,
  runner: Runner,
  { assignments, runners }: PoolRoutesOptions,
): Promise<Answer> {
  readDeclaration('poll request', request);
  if (runners.isDraining(runner)) return DRAIN;
  const held = assignments.poll(runner);
  const stopListening = request.onGone(() => held.release());
  const assignment = await held.offer;
  stopListening();
  if (assignment === null) return runners.isDraining(runner) ? DRAIN : json(200, { assignment: null });
  const offer: Offer = {
    assignment_id: assignment.id,
    run_id: assignment.run.id,
    org_id: ORG_ID,
    runs_on: {
      kind: 'self-hosted',
      pool: assignment.pool,
      ...(assignment.labels.length > 0 ? { labels: [...assignment.labels] } : {}),
    },
    queued_at: assignment.readyAtMs,
  };
  return { ...json(200, { assignment: offer }), onLost: () => assignments.takeBackOffer(assignment) };
}

const DRAIN = json(200, { assignment: null, action: 'drain' });

function claim(request: Incoming, runner: Runner, options: PoolRoutesOptions): Answer {
  const isDeclared = readDeclaration('claim request', request);
  const claimed = options.assignments.claim(runner, request.params[0] ?? '');
  switch (claimed.outcome) {
    case 'unknown':
      return refused(404, 'NOT_FOUND', 'There is no such assignment for this runner.');
    case 'lost':
      return refused(409, 'CONFLICT', 'The assignment was claimed or withdrawn.');
    case 'claimed': {
      options.runLeases.bind(claimed.holder.runToken, claimed.assignment);
      const { workspace_key, ...answer } = claimAnswer(claimed.assignment, claimed.holder, options.url());
      return json(200, isDeclared ? { ...answer, workspace_key } : answer);
    }
  }
}

function claimAnswer({ run }: Assignment, holder: Holder, url: string): ClaimResponse {
  return {
    lease_id: holder.leaseId,
    run_id: run.id,
    workflow_id: run.plan.workflowId,
    environment_id: null,
    workspace_key: null,
    lease_expires_at: holder.lease.until,
    control_plane: { base_url: url, run_token: holder.runToken, api_token: holder.apiToken },
    env: { ...run.plan.env },
    byo_providers: [],
  };
}

function heartbeat(request: Incoming, runner: Runner, { assignments, runners }: PoolRoutesOptions): Answer {
  const { lease_id, run_id } = request.read('heartbeat request', heartbeatRequestSchema);
  const beat = assignments.heartbeat(runner, lease_id, run_id);
  if (beat.outcome === 'lost')
    return refused(409, 'LEASE_LOST', 'The lease has ended or is not this runner’s.');
  const action = beat.cancelRequested ? 'cancel' : runners.isDraining(runner) ? 'drain' : 'continue';
  return json(200, { lease_expires_at: beat.until, action });
}

/** Whether there was one: generation 0.2 sends an empty object, or nothing. @throws Refusal 400 */
function readDeclaration(what: string, request: Incoming): boolean {
  const body = request.json();
  if (isRecord(body) && Object.keys(body).length === 0) return false;
  request.read(what, declarationSchema);
  return true;
}
