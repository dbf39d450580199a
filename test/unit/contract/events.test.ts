import { describe, expect, it } from 'vitest';
import {
  channelOf,
  CHANNELS,
  DEFAULT_CHANNELS,
  isEventKind,
  parseRunEventLenient,
  runEventSchema,
} from '../../../src/contract/events.js';
import { named, vectorCases, type VectorCase } from './vectors.js';

interface EventCase extends VectorCase {
  readonly event: unknown;
  readonly valid: boolean;
  readonly channel?: string;
  readonly normalized?: unknown;
  readonly lenient: unknown;
}

const cases = vectorCases<EventCase>('run-events', 174).filter(({ type }) => type === 'event');

describe('the strict schema agrees with the vectors', () => {
  it.each(named(cases))('%s', (_name, { event, valid, normalized, channel }) => {
    const parsed = runEventSchema.safeParse(event);
    expect(parsed.success).toBe(valid);
    if (!parsed.success) return;
    expect(parsed.data).toEqual(normalized ?? event);
    expect(channelOf(parsed.data.kind)).toBe(channel);
  });
});

describe('a lenient reader', () => {
  it.each(named(cases))('%s', (_name, { event, lenient }) => {
    const before = JSON.stringify(event);
    expect(parseRunEventLenient(event)).toEqual(lenient === 'same' ? event : lenient);
    expect(JSON.stringify(event)).toBe(before);
  });

  it('takes an event that is nested deeper than any stack', () => {
    let value: unknown = 'deep';
    for (let depth = 0; depth < 20_000; depth += 1) value = [value];
    const event = { runId: 'r', turnId: 'r', seq: 1, t: 1, kind: 'output', value };
    expect(parseRunEventLenient(event)).not.toBeNull();
    expect(parseRunEventLenient({ ...event, addedLater: value })).toEqual(event);
  });

  it.each([undefined, null, 7, 'text', [], {}, { kind: '__proto__' }, { kind: 'constructor' }])(
    'skips %j',
    (event) => {
      expect(parseRunEventLenient(event)).toBeNull();
    },
  );
});

describe('channels', () => {
  it('cover every kind of the schema', () => {
    const kinds = runEventSchema.options.map((option) => option.shape.kind.value);
    expect(kinds).toHaveLength(26);
    for (const kind of kinds) expect(CHANNELS).toContain(channelOf(kind));
    expect(DEFAULT_CHANNELS).toEqual(['lifecycle', 'phase', 'output']);
  });

  it('exist for kinds only, not for what every object has', () => {
    expect(isEventKind('turn_reset')).toBe(true);
    expect(isEventKind('constructor')).toBe(false);
    expect(isEventKind('citation')).toBe(false);
  });
});
