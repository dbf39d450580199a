// The author SDK's values against the shared vectors: revival, canonical encoding, durations, sleep arguments.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { encodeValue } from '../../../src/runtime/sdk/encode.js';
import { HostError } from '../../../src/runtime/sdk/hostError.js';
import { normalizeReasoning } from '../../../src/runtime/sdk/reasoning.js';
import { reviveValue } from '../../../src/runtime/sdk/revive.js';
import { parseDuration, sleepToWire } from '../../../src/runtime/sdk/sleepArgument.js';

type Case = Readonly<Record<string, unknown>> & { readonly name: string; readonly type: string };

function casesOf(file: string, type: string): readonly Case[] {
  const text = readFileSync(new URL(`../../vectors/${file}.json`, import.meta.url), 'utf8');
  return (JSON.parse(text) as { cases: Case[] }).cases.filter((one) => one.type === type);
}

/** The run-time value that a tagged description stands for. */
function valueOf(described: unknown): unknown {
  if (typeof described !== 'object' || described === null) return described;
  if (Array.isArray(described)) return described.map(valueOf);
  const tags = described as Record<string, unknown>;
  const [tag, content] = Object.entries(tags)[0] ?? [];
  switch (tag) {
    case '$date':
      return new Date(content === 'invalid' ? Number.NaN : String(content));
    case '$bigint':
      return BigInt(String(content));
    case '$set':
      return new Set((content as unknown[]).map(valueOf));
    case '$bytes':
      return new Uint8Array(Buffer.from(String(content), 'base64'));
    case '$map':
      return new Map((content as [unknown, unknown][]).map(([key, value]) => [valueOf(key), valueOf(value)]));
    case '$typed':
      return new Float64Array(tags['values'] as number[]);
    case '$arraybuffer':
      return new ArrayBuffer(2);
    case '$number':
      return content === '-0' ? -0 : Number(content);
    case '$undefined':
      return undefined;
    case '$function':
      return () => 1;
    case '$symbol':
      return Symbol('s');
    case '$toJSON':
      return { toJSON: () => valueOf(content) };
    case '$error':
      return new Error(String(content));
    case '$class':
      return classInstance(content as { own: object; getters: object });
    case '$cycle': {
      const cycle: Record<string, unknown> = {};
      cycle['self'] = cycle;
      return cycle;
    }
    default: {
      const object = Object.create(Object.prototype) as Record<string, unknown>;
      for (const [key, member] of Object.entries(tags)) {
        Object.defineProperty(object, key, {
          value: valueOf(member),
          enumerable: true,
          writable: true,
          configurable: true,
        });
      }
      return object;
    }
  }
}

function classInstance({ own, getters }: { own: object; getters: object }): unknown {
  const prototype = {};
  for (const [key, value] of Object.entries(getters))
    Object.defineProperty(prototype, key, { get: () => value as unknown });
  return Object.assign(Object.create(prototype) as object, own);
}

describe('revival by schema', () => {
  test.each(casesOf('revive', 'revive'))('$name', ({ schema, wire, revived, ours }) => {
    const expected = (ours as { revived?: unknown } | undefined)?.revived ?? revived;
    expect(reviveValue(wire, schema)).toEqual(valueOf(expected));
  });

  test('a member named __proto__ changes no prototype', () => {
    const revived = reviveValue(JSON.parse('{"__proto__":{"admin":true},"a":1}'), { type: 'object' });
    expect(Object.getPrototypeOf(revived)).toBe(Object.prototype);
    expect(Reflect.get(revived as object, 'admin')).toBeUndefined();
  });
});

describe('canonical encoding', () => {
  test.each(casesOf('revive', 'encode').filter((one) => one['error'] !== true))(
    '$name',
    ({ value, wire }) => {
      expect(JSON.parse(JSON.stringify(encodeValue(valueOf(value))))).toEqual(wire);
    },
  );

  test.each(casesOf('revive', 'encode').filter((one) => one['error'] === true))(
    '$name is refused',
    ({ value, ours }) => {
      const { code } = ours as { code: string };
      expect(() => encodeValue(valueOf(value))).toThrow(expect.objectContaining({ code }));
    },
  );

  test('a value in two places is no cycle, and one too deep is refused like one', () => {
    const shared = { a: 1 };
    expect(encodeValue([shared, shared])).toEqual([{ a: 1 }, { a: 1 }]);
    let deep: unknown = 1;
    for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];
    expect(() => encodeValue(deep)).toThrow(HostError);
  });
});

describe('durations and sleep arguments', () => {
  test.each(casesOf('durations', 'duration'))('duration $name', ({ text, ms }) => {
    expect(parseDuration(String(text))).toBe(ms === 'Infinity' ? Infinity : ms);
  });

  test.each(casesOf('durations', 'sleep_arg'))('$name', ({ arg, wire, error, message }) => {
    if (error !== true) {
      expect(sleepToWire(valueOf(arg))).toEqual(wire);
      return;
    }
    expect(() => sleepToWire(valueOf(arg))).toThrow(expect.objectContaining({ name: message }));
  });
});

test('reasoning: a text is an effort, effort wins over tokens, and what says nothing is nothing', () => {
  expect(normalizeReasoning('low')).toEqual({ effort: 'low' });
  expect(normalizeReasoning({ effort: 'high', maxTokens: 5, exclude: true })).toEqual({
    effort: 'high',
    exclude: true,
  });
  expect(normalizeReasoning({ maxTokens: 5, exclude: false })).toEqual({ maxTokens: 5 });
  expect(normalizeReasoning('loud')).toBeUndefined();
  expect(normalizeReasoning({})).toBeUndefined();
});
