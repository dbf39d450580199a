import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import {
  byoProviderSchema,
  claimResponseSchema,
  declarationSchema,
  heartbeatRequestSchema,
  heartbeatResponseSchema,
  offerSchema,
  pollResponseSchema,
  readClaimResponse,
  readHeartbeatResponse,
  readPollResponse,
  readRegisterResponse,
  registerRequestSchema,
  registerResponseSchema,
  runsOnSchema,
} from '../../../src/contract/pool.js';
import { WireError } from '../../../src/contract/wireError.js';
import { named, asJson, vectorCases, type VectorCase } from './vectors.js';

interface PoolCase extends VectorCase {
  readonly schema: string;
  readonly payload: unknown;
  readonly valid: boolean;
  readonly normalized?: unknown;
}

const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  declaration: declarationSchema,
  registration_request: registerRequestSchema,
  registration_response: registerResponseSchema,
  runs_on: runsOnSchema,
  offer: offerSchema,
  poll_response: pollResponseSchema,
  byo_provider: byoProviderSchema,
  claim_response: claimResponseSchema,
  heartbeat_request: heartbeatRequestSchema,
  heartbeat_response: heartbeatResponseSchema,
};

const READERS: Readonly<Record<string, (body: unknown) => unknown>> = {
  registration_response: readRegisterResponse,
  poll_response: readPollResponse,
  claim_response: readClaimResponse,
  heartbeat_response: readHeartbeatResponse,
};

const cases = vectorCases<PoolCase>('pool-contract', 162);

describe('the strict schemas agree with the pool contract', () => {
  it.each(named(cases))('%s', (_name, { schema, payload, valid, normalized }) => {
    const parsed = SCHEMAS[schema]?.safeParse(payload);
    expect(parsed?.success).toBe(valid);
    if (valid) expect(asJson(parsed?.data)).toEqual(normalized ?? payload);
  });
});

describe('the tolerant readers take what the strict schemas take', () => {
  it.each(named(cases.filter(({ schema, valid }) => valid && schema in READERS)))(
    '%s',
    (_name, { schema, payload, normalized }) => {
      expect(asJson(READERS[schema]?.(payload))).toEqual(normalized ?? payload);
    },
  );
});

const CLAIM = {
  lease_id: 'lse_81',
  run_id: 'run_q7',
  workflow_id: 'wf_inbox',
  environment_id: null,
  workspace_key: 'acme',
  lease_expires_at: 1_893_456_000_000,
  control_plane: { base_url: 'http://127.0.0.1:4810', run_token: 'rt_1', api_token: 'at_1' },
  env: { REGION: 'north' },
  byo_providers: [
    { name: 'office-llm', source: 'openai_compatible', base_url: null, auth_secret_name: null },
  ],
};

const OFFER = {
  assignment_id: 'as_1',
  run_id: 'run_q7',
  org_id: 'org_elm',
  runs_on: { kind: 'self-hosted', pool: 'lab', labels: ['gpu'] },
  queued_at: 1_893_456_000_000,
};

describe('an answer of a newer server', () => {
  it('keeps a claim usable when fields were added at any depth (R10)', () => {
    const newer = {
      ...CLAIM,
      attempt: 2,
      control_plane: { ...CLAIM.control_plane, region: 'eu' },
      byo_providers: [{ ...CLAIM.byo_providers[0], models: ['a'] }],
    };
    expect(readClaimResponse(newer)).toEqual(CLAIM);
  });

  it('leaves out a provider that can not be used, and keeps the claim', () => {
    const [provider] = CLAIM.byo_providers;
    const claim = { ...CLAIM, byo_providers: [{ name: 7 }, provider, null] };
    expect(readClaimResponse(claim).byo_providers).toEqual([provider]);
    expect(readClaimResponse({ ...CLAIM, byo_providers: undefined }).byo_providers).toEqual([]);
  });

  it('reads a claim without a workspace key as one without a key', () => {
    const older = { ...CLAIM, workspace_key: undefined };
    expect(readClaimResponse(asJson(older)).workspace_key).toBeNull();
  });

  it('keeps an offer usable when fields were added, inside runs_on too', () => {
    const newer = {
      assignment: { ...OFFER, priority: 3, runs_on: { ...OFFER.runs_on, size: 'large' } },
      hold: 22,
    };
    expect(readPollResponse(newer)).toEqual({ assignment: OFFER });
  });

  it('takes an unknown action of a poll or a heartbeat for "go on"', () => {
    expect(asJson(readPollResponse({ assignment: null, action: 'rest' }))).toEqual({ assignment: null });
    expect(readPollResponse({ assignment: null, action: 'drain' }).action).toBe('drain');
    expect(readHeartbeatResponse({ lease_expires_at: 5, action: 'rest' }).action).toBe('continue');
    expect(readHeartbeatResponse({ lease_expires_at: 5 }).action).toBe('continue');
    expect(readHeartbeatResponse({ lease_expires_at: 5, action: 'cancel', extra: 1 }).action).toBe('cancel');
  });
});

describe('an answer that can not be used', () => {
  const broken: readonly (readonly [string, () => unknown, string])[] = [
    [
      'no run token',
      () => readClaimResponse({ ...CLAIM, control_plane: { base_url: 'http://x', api_token: 'a' } }),
      'control_plane.run_token is missing',
    ],
    ['a lease as text', () => readClaimResponse({ ...CLAIM, lease_expires_at: '2030' }), 'lease_expires_at'],
    ['no env', () => readClaimResponse({ ...CLAIM, env: undefined }), 'env is missing'],
    ['no object', () => readClaimResponse('<html>'), 'the body'],
    [
      'an offer without an id',
      () => readPollResponse({ assignment: { ...OFFER, assignment_id: '' } }),
      'assignment.assignment_id',
    ],
    [
      'an offer for nothing',
      () => readPollResponse({ assignment: { ...OFFER, runs_on: { kind: 'moon', size: 1 } } }),
      'assignment.runs_on',
    ],
    ['no assignment at all', () => readPollResponse({ action: 'drain' }), 'assignment is missing'],
    [
      'no deadline',
      () => readHeartbeatResponse({ action: 'continue', extra: 1 }),
      'lease_expires_at is missing',
    ],
    ['an array', () => readHeartbeatResponse([]), 'the body'],
    [
      'no token',
      () =>
        readRegisterResponse({ runner_id: 'r', pool: 'p', poll: { url: 'http://x', interval_seconds: 5 } }),
      'runner_token is missing',
    ],
  ];

  it.each(broken)('names the endpoint and the field: %s (R25)', (_name, read, expected) => {
    expect(read).toThrow(WireError);
    expect(read).toThrow(expected);
    expect(read).toThrow(/^(claim|poll|heartbeat|register) response: /);
  });

  it('never quotes a value, which may be a credential', () => {
    const read = (): unknown =>
      readClaimResponse({
        ...CLAIM,
        control_plane: { base_url: 'bwrt_in_the_wrong_field', run_token: 'bwrt_secret', api_token: 7 },
      });
    expect(read).toThrow(WireError);
    expect(read).not.toThrow(/bwrt/);
  });
});
