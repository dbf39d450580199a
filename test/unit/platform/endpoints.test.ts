import { describe, expect, it } from 'vitest';
import { OperatorError } from '../../../src/contract/operatorError.js';
import { below, controlPlaneBase, encodeSegment } from '../../../src/platform/endpoints.js';

describe('the base of a control plane', () => {
  it.each([
    ['http://127.0.0.1:4810', 'http://127.0.0.1:4810'],
    ['https://boardwalk.example/', 'https://boardwalk.example'],
    ['https://boardwalk.example/base//', 'https://boardwalk.example/base'],
  ])('is %s without trailing slashes', (url, base) => expect(controlPlaneBase(url)).toBe(base));

  it.each(['', 'boardwalk.example', 'ftp://x', 'http://x/?q=1', 'http://x/#f'])('is not %j', (url) =>
    expect(() => controlPlaneBase(url)).toThrow(OperatorError),
  );

  it('does not repeat a password in its complaint', () => {
    expect(() => controlPlaneBase('http://user:hidden@x')).toThrow(/^(?!.*hidden).*user name or password/);
  });
});

describe('an id in a path', () => {
  it.each([
    ['asg_1', 'asg_1'],
    ['a/b', 'a%2Fb'],
    ['%2e%2e', '%252e%252e'],
    ['ä ?#', '%C3%A4%20%3F%23'],
  ])('%j becomes the one segment %s', (id, segment) => expect(encodeSegment(id)).toBe(segment));

  it.each(['', '.', '..', '\ud800'])('%j is refused', (id) => expect(encodeSegment(id)).toBeNull());
});

describe('a path below a run (R13)', () => {
  const prefix = 'http://cp/runner/v1/runs/run_1/';

  it('stays as it came', () => {
    expect(below(prefix, 'inputs/1%2F2')).toBe(`${prefix}inputs/1%2F2`);
    expect(below(prefix, 'artifacts', 'name=a%20b')).toBe(`${prefix}artifacts?name=a%20b`);
  });

  it.each(['../run_2/secrets', '%2e%2e/run_2/x', 'a/../../x', '..', 'a\\..\\..\\x', 'a?x', 'a#x'])(
    'does not lead out by %s',
    (suffix) => expect(below(prefix, suffix)).toBeNull(),
  );

  it('does not become another host', () => {
    expect(below(prefix, '//evil/x')).toBe(`${prefix}//evil/x`);
    expect(below(prefix, 'http://evil/x')).toBe(`${prefix}http://evil/x`);
  });
});
