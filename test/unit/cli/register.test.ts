import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { adviceFor, runRegister } from '../../../src/cli/commands/register.js';
import type { Terminal } from '../../../src/cli/program.js';
import { PlatformError, type PlatformErrorCode } from '../../../src/platform/platformError.js';
import { saveIdentity } from '../../../src/poller/identity.js';
import { sendJson, startTestServer, type TestServer } from '../platform/testServer.js';

describe('a registration that failed', () => {
  const failed = (code: PlatformErrorCode, status?: number): PlatformError =>
    new PlatformError(code, 'register: no', { endpoint: 'register', status });

  it.each([
    ['PLATFORM_STATUS', 401, 'good for one machine'],
    ['PLATFORM_STATUS', 404, 'Is --url right?'],
    ['PLATFORM_STATUS', 503, 'trouble of its own'],
    ['PLATFORM_INVALID', 200, 'Is --url right?'],
    ['PLATFORM_TIMEOUT', undefined, 'may have been used'],
  ] as const)('by %s %s is followed by the advice that fits', (code, status, words) => {
    expect(adviceFor(failed(code, status))).toContain(words);
  });
});

describe('a machine that is registered already', () => {
  let dir = '';
  let server: TestServer;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bwf-register-'));
    server = await startTestServer((response) =>
      sendJson(response, 201, {
        runner_id: 'rnr_new',
        runner_token: 'bwkr_new',
        pool: 'default',
        poll: { url: 'http://127.0.0.1:1/poll', interval_seconds: 1 },
      }),
    );
  });
  afterEach(async () => {
    await server.close();
    await rm(dir, { recursive: true, force: true });
  });

  const register = (force: boolean): Promise<number> =>
    runRegister(
      { url: server.url, token: 'bwkreg_x', name: 'box', labels: [], identityDir: dir, force },
      { argument: undefined, pairs: {} },
      {
        environment: {},
        stdout: { write: () => true },
        stderr: { write: () => true },
      } as unknown as Terminal,
    );

  it('keeps its identity, and its new token unspent, unless it is forced', async () => {
    const path = await saveIdentity(dir, {
      runnerId: 'rnr_old',
      runnerToken: 'bwkr_old',
      controlPlaneUrl: server.url,
      pool: 'default',
      name: 'box',
      createdAtMs: 1,
    });
    await expect(register(false)).rejects.toMatchObject({
      message: expect.stringContaining(`rnr_old (${path})`) as string,
      hint: expect.stringMatching(/--force[^]*--identity-dir/) as string,
      usage: false,
    });
    expect(server.seen).toEqual([]);
    expect(await register(true)).toBe(0);
    expect(server.seen).toHaveLength(1);
  });
});
