import { describe, expect, test } from 'vitest';
import { Refusal } from '../../../src/executor/gateway/answers.js';
import { routeOf } from '../../../src/executor/gateway/routes.js';

const RUN = 'run_a/ü';
const BASE = `/runner/v1/runs/${encodeURIComponent(RUN)}/`;

function refusalOf(method: string, url: string): { status: number; code: string } {
  try {
    routeOf(RUN, method, url);
  } catch (error) {
    if (error instanceof Refusal) return { status: error.status, code: error.code };
    throw error;
  }
  throw new Error('the path was routed');
}

describe('the routes of a run', () => {
  test.each([
    ['POST', 'claim', 'claim'],
    ['POST', 'renew', 'renew'],
    ['GET', 'version', 'version'],
    ['GET', 'cancel', 'cancel'],
    ['GET', 'credit', 'credit'],
    ['POST', 'usage', 'relay'],
    ['POST', 'usage/tokens', 'relay'],
    ['POST', 'telemetry', 'telemetry'],
    ['POST', 'finalize', 'finalize'],
    ['POST', 'secrets/resolve', 'secret'],
    ['POST', 'inference', 'inference'],
    ['GET', 'inference/providers', 'relay'],
    ['POST', 'inputs', 'relay'],
    ['GET', 'inputs/7', 'relay'],
    ['POST', 'children', 'relay'],
    ['GET', 'children/run_9', 'relay'],
    ['POST', 'schedules', 'relay'],
    ['POST', 'artifacts', 'relay'],
    ['GET', 'artifacts', 'relay'],
    ['POST', 'artifacts/presign', 'relay'],
    ['POST', 'artifacts/commit', 'relay'],
    ['POST', 'artifacts/art_1/signed-url', 'relay'],
    ['POST', 'workspace/reserve', 'relay'],
    ['POST', 'workspace/manifest/read', 'relay'],
    ['POST', 'workspace/manifest/write', 'relay'],
    ['POST', 'workspace/packs/exists', 'relay'],
    ['POST', 'workspace/packs/presign', 'relay'],
    ['POST', 'workspace/packs/delete', 'relay'],
    ['POST', 'workspace/hydrate-url', 'relay'],
    ['POST', 'workspace/persist-url', 'relay'],
    ['POST', 'oidc/token', 'secret'],
    ['POST', 'mcp/token', 'secret'],
    ['POST', 'tools/web_search', 'relay'],
    ['POST', 'liveview', 'relay'],
    ['GET', 'liveview/wanted', 'relay'],
    ['GET', '_fleet/watch', 'watch'],
    ['GET', '_fleet/program', 'program'],
  ])('%s %s is known', (method, suffix, kind) => {
    expect(routeOf(RUN, method, BASE + suffix)).toMatchObject({ kind, suffix });
  });

  test('an id is passed on percent-encoded, whatever it was written as', () => {
    expect(routeOf(RUN, 'GET', `${BASE}children/a%2Fb%20c?x=1&y`)).toEqual({
      kind: 'relay',
      method: 'GET',
      suffix: 'children/a%2Fb%20c',
      query: 'x=1&y',
    });
  });

  test('a path that is not in the table is a 404', () => {
    for (const suffix of [
      '',
      'nope',
      'claim/',
      'claim/x',
      'artifacts/x',
      'inputs/',
      '_fleet/api-token',
      'constructor',
      '*',
      'inputs/*/x',
    ]) {
      expect(refusalOf('POST', BASE + suffix), suffix).toEqual({ status: 404, code: 'NOT_FOUND' });
    }
    for (const url of [
      '',
      '/',
      '*',
      '/runner/v1/runs',
      '/runner/v2/runs/x/claim',
      'http://elsewhere/runner/v1/runs/x/claim',
    ]) {
      expect(refusalOf('GET', url), url).toEqual({ status: 404, code: 'NOT_FOUND' });
    }
  });

  test('an id can not climb out of its place (R13)', () => {
    for (const id of ['.', '..', '%2e%2e', '%2E']) {
      expect(refusalOf('GET', `${BASE}children/${id}`), id).toEqual({ status: 404, code: 'NOT_FOUND' });
    }
    expect(routeOf(RUN, 'GET', `${BASE}children/..%2f..%2fclaim`).suffix).toBe('children/..%2F..%2Fclaim');
    // A slash inside an id makes no new segments.
    expect(refusalOf('POST', `${BASE}usage%2Ftokens`)).toEqual({ status: 404, code: 'NOT_FOUND' });
  });

  test('another run is forbidden', () => {
    expect(refusalOf('POST', '/runner/v1/runs/run_b/claim')).toEqual({ status: 403, code: 'FORBIDDEN' });
  });

  test('a known path with another method is a 405', () => {
    expect(refusalOf('GET', `${BASE}claim`)).toEqual({ status: 405, code: 'METHOD_NOT_ALLOWED' });
    expect(refusalOf('DELETE', `${BASE}artifacts`)).toEqual({ status: 405, code: 'METHOD_NOT_ALLOWED' });
  });

  test('broken percent-encoding is a 400', () => {
    expect(refusalOf('GET', `${BASE}children/%zz`)).toEqual({ status: 400, code: 'BAD_PATH' });
  });
});
