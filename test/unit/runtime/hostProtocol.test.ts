// What the runtime says to programs, held against the protocol's schemas: at run time nobody checks it, because the
// runtime boots without a validation library, and the SDKs of others check it strictly.

import { describe, expect, test } from 'vitest';
import { clientMethods } from '../../../src/contract/hostProtocol.js';
import { readRunClaim } from '../../../src/contract/runAnswers.js';
import { SecretSet } from '../../../src/redaction/secretSet.js';
import { Agents } from '../../../src/runtime/agent/leaf.js';
import { Budget } from '../../../src/runtime/budget.js';
import { Capabilities } from '../../../src/runtime/capabilities.js';
import { programContext } from '../../../src/runtime/context.js';
import { EventStream } from '../../../src/runtime/eventStream.js';
import { ProcessGroups } from '../../../src/runtime/processGroups.js';
import { ProgramReport } from '../../../src/runtime/programReport.js';
import { Secrets } from '../../../src/runtime/secrets.js';

const RUN = {
  id: 'run_q7',
  orgId: 'org_elm',
  workflowId: 'wf_inbox',
  actor: { type: 'user', user_id: 'usr_2' },
  createdAt: 1_893_456_000_000,
};

describe('the context of a program', () => {
  test.each([
    { type: 'user', user_id: 'u', email: 'not known to a program' },
    { type: 'workflow', parent_run_id: 'r', parent_workflow_id: 'w', user_id: 'u' },
    { type: 'webhook', source: 'crm' },
    { type: 'cron', rule: '0 * * * *' },
    {
      type: 'event',
      subscription_id: 's',
      source_run_id: 'r',
      source_workflow_id: 'w',
      event_type: 'run.completed',
      event_chain_depth: 0,
    },
  ])('is one that a strict SDK takes, for an actor of type $type', async (actor) => {
    const boot = await hostOf({ ...RUN, actor }).request('bootstrap', {});
    expect(clientMethods.bootstrap.result.parse(boot)).toEqual(boot);
  });

  test('is one that a strict SDK takes, with everything in it', async () => {
    const triggerRequest = { method: 'POST', path: '/hook', query: { a: '1' }, headers: { b: '2' } };
    const run = { ...RUN, attempt: 3, triggerKind: 'webhook', triggerRequest, input: { n: 1 } };
    const boot = await hostOf(run, { environment: { id: 'env_1', name: 'staging' } }).request(
      'bootstrap',
      {},
    );
    expect(clientMethods.bootstrap.result.parse(boot)).toEqual(boot);
    expect(boot).toMatchObject({
      context: { environment: { name: 'staging' }, trigger: { request: triggerRequest } },
    });
  });
});

describe('an answer of the host', () => {
  test.each([
    ['report_return', { value: { n: 1 } }],
    ['sleep', { arg: 0 }],
    ['secrets.get', { name: 'CRM_KEY' }],
    ['shell', { cmd: 'echo out; echo err >&2; exit 3' }],
    ['usage.get', {}],
  ] as const)('has the shape that was agreed for %s', async (method, params) => {
    const answer = await hostOf(RUN).request(method, params);
    expect(clientMethods[method].result.parse(answer)).toEqual(answer);
  });

  test('to usage.get tells caps and what is left', async () => {
    const answer = await hostOf(RUN, { usd: 2 }).request('usage.get', {});
    expect(clientMethods['usage.get'].result.parse(answer)).toMatchObject({ usd: { cap: 2, remaining: 2 } });
  });
});

interface HostOptions {
  readonly environment?: object;
  readonly usd?: number;
}

function hostOf(run: object, { environment, usd }: HostOptions = {}): Capabilities {
  const claim = readRunClaim({ run, workflowVersion: 2, environment });
  const secrets = new SecretSet();
  const signal = new AbortController().signal;
  const budget = new Budget({ usd: usd ?? null, tokens: null, compute: null }, () => 1_500);
  const control = {
    call: () => Promise.resolve({ status: 200, body: Buffer.from('{"value":"s3cret"}') }),
    stream: () => Promise.reject(new Error('no model here')),
    unexpected: () => {
      throw new Error('the secret was not given out');
    },
  };
  const events = new EventStream({ runId: claim.run.id, lastCursor: 0, deliver: () => Promise.resolve() });
  return new Capabilities({
    input: null,
    inputSchema: null,
    context: programContext(claim, '/workspace'),
    agents: new Agents({ control, events, secrets, budget, usage: { tokens: () => undefined }, signal }),
    budget,
    secretCalls: new Secrets({ control, known: secrets, signal }),
    secrets,
    shell: { workspaceDir: process.cwd(), env: {}, groups: new ProcessGroups(), signal },
    report: new ProgramReport(),
    emit: (event) => events.emit(event),
    signal,
    log: () => undefined,
  });
}
