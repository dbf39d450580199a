import { describe, expect, it } from 'vitest';
import {
  effectiveInput,
  finalizeRequestSchema,
  inferenceRequestSchema,
  readCancel,
  readCredit,
  readRenew,
  readRunClaim,
  readSecret,
  readVersion,
  telemetryRequestSchema,
  tokenUsageRequestSchema,
  usageRequestSchema,
} from '../../../src/contract/runControl.js';
import { WireError } from '../../../src/contract/wireError.js';

const RUN = {
  id: 'run_q7',
  orgId: 'org_elm',
  workflowId: 'wf_inbox',
  workflowVersionId: 'wv_3',
  environmentId: null,
  attempt: 2,
  actor: { type: 'user', user_id: 'usr_2' },
  triggerKind: 'manual',
  triggerRequest: null,
  input: { n: 1 },
  triggerPayload: null,
  config: null,
  createdAt: 1_893_456_000_000,
  startedAt: null,
};

const CLAIM = {
  run: RUN,
  leaseUntil: 1_893_456_300_000,
  lastEventCursor: 4,
  workflowVersion: 3,
  environment: { id: 'env_1', name: 'staging' },
};

describe('the claim of a run', () => {
  it('is read field by field', () => {
    expect(readRunClaim(CLAIM)).toEqual({ ...CLAIM, raw: CLAIM });
  });

  it('takes the defaults of older servers', () => {
    const run = { ...RUN, attempt: undefined };
    const claim = readRunClaim({ run: { ...run, triggerKind: 'carrier_pigeon' } });
    expect(claim).toMatchObject({
      lastEventCursor: 0,
      workflowVersion: 1,
      environment: null,
      leaseUntil: undefined,
    });
    expect(claim.run).toMatchObject({ attempt: 1, triggerKind: 'manual' });
    expect(readRunClaim({ ...CLAIM, workflowVersion: null, environment: null })).toMatchObject({
      workflowVersion: 1,
    });
  });

  it('keeps what a newer server added for whoever hands it on (R10)', () => {
    const newer = { ...CLAIM, region: 'eu', run: { ...RUN, priority: 9 } };
    expect(readRunClaim(newer).raw).toBe(newer);
    expect(readRunClaim(newer).run).not.toHaveProperty('priority');
  });

  it('passes on only those fields of an actor that a program may see', () => {
    const actor = (given: object): object =>
      readRunClaim({ ...CLAIM, run: { ...RUN, actor: given } }).run.actor;
    expect(actor({ type: 'user', user_id: 'u', email: 'e' })).toEqual({ type: 'user', user_id: 'u' });
    expect(actor({ type: 'event', event: 'old', source_run_id: 'r' })).toEqual({
      type: 'event',
      source_run_id: 'r',
    });
    expect(actor({ type: 'api_key', id: 'k' })).toEqual({ type: 'api_key', id: 'k' });
    expect(actor({ type: 'constructor', id: 'k' })).toEqual({ type: 'constructor', id: 'k' });
  });

  it('drops a trigger request that a program could not check', () => {
    const request = { method: 'POST', path: '/', query: {}, headers: { a: 'b' } };
    const read = (triggerRequest: unknown): unknown =>
      readRunClaim({ ...CLAIM, run: { ...RUN, triggerRequest } }).run.triggerRequest;
    expect(read({ ...request, body: 'x' })).toEqual(request);
    for (const odd of [
      7,
      null,
      {},
      { ...request, headers: { a: ['1'] } },
      { ...request, method: 'M'.repeat(17) },
      { ...request, path: 'p'.repeat(2_049) },
    ])
      expect(read(odd)).toBeNull();
  });

  it('prefers explicit input, falsy values included, over what triggered the run', () => {
    const input = (given: unknown, payload: unknown): unknown =>
      effectiveInput(readRunClaim({ ...CLAIM, run: { ...RUN, input: given, triggerPayload: payload } }).run);
    expect(input(0, 'payload')).toBe(0);
    expect(input(false, 'payload')).toBe(false);
    expect(input(null, { a: 1 })).toEqual({ a: 1 });
    expect(input(undefined, undefined)).toBeNull();
  });

  it.each([
    [null, 'run claim: the body must be an object'],
    [{}, 'run claim: run is missing'],
    [{ run: { ...RUN, workflowId: 7 } }, 'run claim: run.workflowId must be a string'],
    [{ run: { ...RUN, createdAt: '2030' } }, 'run claim: run.createdAt must be an integer'],
    [{ run: { ...RUN, actor: null } }, 'run claim: run.actor must be an object'],
  ])('names what is wrong: %j', (body, message) => {
    expect(() => readRunClaim(body)).toThrow(WireError);
    expect(() => readRunClaim(body)).toThrow(message);
  });
});

describe('a version', () => {
  const digest = 'A'.repeat(64);

  it('has its digest in lower case, and a default SDK', () => {
    const body = {
      manifest: { slug: 'x' },
      program: { entry: 'index.mjs', digest, downloadUrl: '/p' },
      extra: 1,
    };
    expect(readVersion(body)).toEqual({
      manifest: { slug: 'x' },
      program: { entry: 'index.mjs', digest: 'a'.repeat(64), sdkVersion: '*', downloadUrl: '/p' },
    });
  });

  it.each([
    [{ manifest: {} }, 'program is missing'],
    [{ program: { entry: 'i', digest: 'abc', downloadUrl: '/p' } }, 'program.digest must be a SHA-256'],
    [{ program: { entry: 'i', digest, downloadUrl: '' } }, 'program.downloadUrl must not be empty'],
  ])('names what is wrong: %j', (body, message) => {
    expect(() => readVersion(body)).toThrow(message);
  });
});

describe('short answers', () => {
  it('are read, whatever else they hold', () => {
    expect(readRenew({ leaseUntil: 7, extra: 1 })).toEqual({ leaseUntil: 7 });
    expect(readRenew({})).toEqual({ leaseUntil: undefined });
    expect(readCancel({ cancelRequested: true, why: 'x' })).toEqual({ cancelRequested: true });
    expect(readCredit({ funded: false })).toEqual({ funded: false });
    expect(readSecret({ value: '' })).toEqual({ value: '' });
  });

  it('are refused when the one field is missing or mistyped, and never quoted', () => {
    expect(() => readCancel({ cancelRequested: 'yes' })).toThrow(
      'cancel: cancelRequested must be true or false',
    );
    expect(() => readCredit({})).toThrow('credit: funded is missing');
    expect(() => readSecret({ value: ['hunter22'] })).toThrow('secret: value must be a string');
    expect(() => readSecret({ value: ['hunter22'] })).not.toThrow(/hunter/);
  });
});

describe('what a run sends', () => {
  it('finalizes with null when it has no output, and with nothing that is not known', () => {
    expect(finalizeRequestSchema.parse({ status: 'completed', workerId: 'w', extra: 1 })).toEqual({
      status: 'completed',
      output: null,
      workerId: 'w',
    });
    expect(finalizeRequestSchema.safeParse({ status: 'cancelled', output: 1, workerId: 'w' }).success).toBe(
      false,
    );
    expect(finalizeRequestSchema.safeParse({ status: 'failed', output: 1, workerId: '' }).success).toBe(
      false,
    );
  });

  it('reports telemetry as texts, and usage as whole positive numbers', () => {
    expect(telemetryRequestSchema.safeParse({ frames: ['{}', ''] }).success).toBe(true);
    expect(telemetryRequestSchema.safeParse({ frames: [{}] }).success).toBe(false);
    expect(usageRequestSchema.safeParse({ runtimeSeconds: 0, identifier: 'i' }).success).toBe(false);
    expect(usageRequestSchema.safeParse({ runtimeSeconds: 1, identifier: 'i' }).success).toBe(true);
    expect(
      tokenUsageRequestSchema.safeParse({ inputTokens: 1, outputTokens: 0, identifier: 'i', model: 'm' })
        .success,
    ).toBe(true);
    expect(
      tokenUsageRequestSchema.safeParse({ inputTokens: 1.5, outputTokens: 0, identifier: 'i' }).success,
    ).toBe(false);
  });

  it('asks a model with messages and tools that nobody checks, and with an odd reasoning dropped', () => {
    const body = { messages: [7], tools: [], reasoning: 'low', model: 'm', future: true };
    expect(inferenceRequestSchema.parse(body)).toEqual({ messages: [7], tools: [], model: 'm' });
    expect(inferenceRequestSchema.parse({ ...body, reasoning: { effort: 'low' } }).reasoning).toEqual({
      effort: 'low',
    });
    for (const bad of [
      { messages: [] },
      { messages: {}, tools: [] },
      { messages: [], tools: [], model: 7 },
      null,
    ])
      expect(inferenceRequestSchema.safeParse(bad).success).toBe(false);
  });
});
