// The admin API for tests and demos: it makes runs, shows them, cancels them and reports. One token opens all of it.

import { z } from 'zod';
import { OperatorError } from '../../contract/operatorError.js';
import { json, refused, type Answer } from './answer.js';
import type { Incoming } from './incoming.js';
import type { Route } from './router.js';
import { viewOf, type Run } from './run.js';
import { runsRequestSchema, type RunsSpec } from './runSpec.js';
import type { Runners } from './runners.js';
import type { Runs } from './runs.js';
import type { Tally } from './tally.js';
import { isSameToken } from './tokens.js';

export interface AdminRoutesOptions {
  readonly adminToken: string;
  readonly pool: string;
  readonly runners: Runners;
  readonly runs: Runs;
  readonly tally: Tally;
  readonly createRuns: (spec: RunsSpec) => readonly string[];
}

/** A program's source and its input are part of it. */
const RUNS_BODY_BYTES = 64 * 1024 * 1024;

export function adminRoutes(options: AdminRoutesOptions): Route[] {
  const { adminToken, pool, runners, runs, tally } = options;
  const guarded = (route: Route): Route => ({
    ...route,
    answer: (request) =>
      isSameToken(request.bearer, adminToken)
        ? route.answer(request)
        : refused(401, 'UNAUTHORIZED', 'The admin API takes the admin token as its bearer.'),
  });
  const ofRun =
    (answer: (run: Run) => Answer): Route['answer'] =>
    (request) => {
      const run = runs.get(request.params[0] ?? '');
      return run === undefined ? refused(404, 'NOT_FOUND', 'There is no such run.') : answer(run);
    };
  const routes: Route[] = [
    {
      method: 'POST',
      path: '/dev/v1/runs',
      bodyBytes: RUNS_BODY_BYTES,
      answer: (request) => createRuns(request, options),
    },
    { method: 'GET', path: '/dev/v1/runs/{run_id}', answer: ofRun((run) => json(200, viewOf(run))) },
    {
      method: 'GET',
      path: '/dev/v1/runs/{run_id}/events',
      answer: ofRun((run) => json(200, { rows: run.rows.inOrder() })),
    },
    {
      method: 'POST',
      path: '/dev/v1/runs/{run_id}/cancel',
      answer: ofRun((run) => {
        runs.cancel(run);
        return json(200, { status: run.status });
      }),
    },
    { method: 'GET', path: '/dev/v1/report', answer: () => json(200, tally.report()) },
    {
      method: 'POST',
      path: '/dev/v1/drain',
      answer: () => {
        runners.drain();
        runs.dispatch.releaseAll();
        return json(200, { draining: true });
      },
    },
    {
      method: 'POST',
      path: '/dev/v1/tokens',
      answer: (request) => {
        const given = request.read('tokens request', tokensRequestSchema);
        return json(201, { registration_token: runners.invite(given.pool ?? pool) });
      },
    },
  ];
  return routes.map(guarded);
}

const tokensRequestSchema = z.strictObject({ pool: z.string().min(1).max(120).optional() });

function createRuns(request: Incoming, options: AdminRoutesOptions): Answer {
  const spec = request.read('runs request', runsRequestSchema);
  try {
    return json(201, { run_ids: options.createRuns(spec) });
  } catch (error) {
    if (error instanceof OperatorError) return refused(400, error.code, error.message);
    throw error;
  }
}
