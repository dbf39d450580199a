// What a run has spent: its caps, and the reports of it.

import { describe, expect, test } from 'vitest';
import { Budget } from '../../../src/runtime/budget.js';
import { SecretSet } from '../../../src/redaction/secretSet.js';
import { type ControlCall, UnexpectedAnswer } from '../../../src/runtime/control.js';
import { UsageReports } from '../../../src/runtime/usageReports.js';

const containing = (text: string): unknown => expect.stringContaining(text);
const matching = (pattern: RegExp): unknown => expect.stringMatching(pattern);

describe('the budget', () => {
  test('without caps has spent and nothing remaining', () => {
    const budget = new Budget({ usd: null, tokens: null, compute: null }, () => 61_500);
    budget.spend({ inputTokens: 1_000_000, outputTokens: 1_000_000, cacheReadTokens: 1_000_000 }, 0);
    budget.check();
    const { usd, tokens, compute_seconds } = budget.snapshot();
    expect(usd.spent).toBeCloseTo(18.3);
    expect([tokens.spent, compute_seconds]).toEqual([2_000_000, { spent: 61, cap: null, remaining: null }]);
  });

  test('is breached only above its cap, tokens first', () => {
    const budget = new Budget({ usd: 0.001, tokens: 10, compute: null }, () => 0);
    budget.spend({ inputTokens: 5, outputTokens: 5 }, 1_000);
    budget.check();
    budget.spend({ inputTokens: 1 }, 1);
    expect(() => budget.check()).toThrow(
      expect.objectContaining({ code: 'BUDGET_EXCEEDED', message: containing('max_tokens') }),
    );
    expect(budget.snapshot().tokens).toEqual({ spent: 11, cap: 10, remaining: 0 });
  });
});

describe('usage reports', () => {
  function reports(
    statuses: number[],
    elapsed: { ms: number },
  ): { usage: UsageReports; bodies: unknown[]; logged: string[] } {
    const bodies: unknown[] = [];
    const logged: string[] = [];
    const usage = new UsageReports({
      runId: 'r1',
      vcpus: 2,
      elapsedMs: () => elapsed.ms,
      log: (message) => logged.push(message),
      lastReportsMs: 50,
      control: {
        call: ({ body }: ControlCall) => {
          bodies.push(body);
          const status = statuses.shift() ?? 204;
          return status === 0
            ? new Promise(() => undefined)
            : Promise.resolve({ status, body: Buffer.alloc(0) });
        },
        unexpected: (call, answer) => new UnexpectedAnswer(call.name, answer, new SecretSet()),
      },
    });
    return { usage, bodies, logged };
  }

  test('compute is seconds times vCPUs, at the end, and nothing when there is less than one', async () => {
    const some = reports([], { ms: 1_600 });
    await some.usage.finish();
    expect(some.bodies).toEqual([{ runtimeSeconds: 3, identifier: matching(/^r1:[0-9a-f-]{36}:rt:0$/) }]);
    const none = reports([], { ms: 200 });
    await none.usage.finish();
    expect(none.bodies).toEqual([]);
  });

  test('a failed report is repeated, larger, under the same identifier', async () => {
    const elapsed = { ms: 1_000 };
    const { usage, bodies } = reports([500], elapsed);
    await usage.finish();
    elapsed.ms = 4_000;
    await usage.finish();
    expect(bodies).toMatchObject([{ runtimeSeconds: 2 }, { runtimeSeconds: 8 }]);
    const [first, second] = bodies as { identifier: string }[];
    expect(first?.identifier).toBe(second?.identifier);
  });

  test('tokens are waited for at the end, but not for ever (R18)', async () => {
    const { usage, bodies, logged } = reports([0], { ms: 0 });
    usage.tokens(1, { inputTokens: 3.7, outputTokens: -1 }, 'm/x');
    usage.tokens(2, {}, 'm/x');
    await usage.finish();
    expect(bodies).toMatchObject([
      { inputTokens: 3, outputTokens: 0, model: 'm/x', identifier: matching(/:1:0$/) },
      { inputTokens: 0, outputTokens: 0, identifier: matching(/:2:1$/) },
    ]);
    expect(logged).toEqual(['usage: not all reports were answered in time']);
  });
});
