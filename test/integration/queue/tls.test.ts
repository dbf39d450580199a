// A Redis as hosted ones are: TLS with a certificate of its own authority, and a user with a password. What is set must
// reach every connection, also those that the queue library holds (P4).

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openFleet, type Fleet, type RedisSettings } from '../../../src/queue/fleet.js';
import { closeRedis, openRedis } from '../../../src/queue/redis.js';
import { generateFleetKey, parseFleetKeys } from '../../../src/queue/seal.js';
import { jobOf, silent, someClaim } from '../../support/fleet.js';
import { freePort } from '../../support/freePort.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';

let dir: string;
let redis: TestRedis;
let settings: RedisSettings;
beforeAll(async () => {
  dir = await mkdtemp('/tmp/bwt-tls-');
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  const wanted = '-x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost';
  const names = ['-addext', 'subjectAltName=DNS:localhost'];
  await promisify(execFile)('openssl', ['req', ...wanted.split(' '), ...names, '-keyout', key, '-out', cert]);
  const port = await freePort();
  const tls = ['--tls-port', String(port), '--tls-cert-file', cert, '--tls-key-file', key];
  redis = await startTestRedis({
    args: [
      ...[
        ...tls,
        '--tls-ca-cert-file',
        cert,
        '--tls-auth-clients',
        'no',
        '--requirepass',
        'of the default user',
      ],
      ...['--user', 'fleet', 'on', '>of the fleet', '~{bwf:test}:*', '&*', '+@all'],
    ],
  });
  const url = `rediss://localhost:${port}`;
  settings = { url, username: 'fleet', password: 'of the fleet', tls: { ca: await readFile(cert, 'utf8') } };
});
afterAll(async () => {
  await redis.stop();
  await rm(dir, { recursive: true });
});

const open = (changes: Partial<RedisSettings> = {}): Promise<Fleet> =>
  openFleet({
    name: 'test',
    redis: { ...settings, ...changes },
    keys: parseFleetKeys(generateFleetKey()),
    log: silent,
  });

it('a fleet takes runs and flushes lanes over TLS, as a user who may touch its own keys only (P4)', async () => {
  const fleet = await open();
  const flushed: string[] = [];
  const worker = fleet.flushes.worker(
    (runId) => {
      flushed.push(runId);
      return Promise.resolve('drained');
    },
    { concurrency: 1 },
  );
  const consumer = fleet.runs.consumer('default', { lockMs: 60_000, stalledCheckMs: 12_000 });
  try {
    worker.start();
    consumer.start();
    const claim = someClaim({ runId: 'run_1' });
    await fleet.runStates.recordClaim(claim);
    await fleet.runs.add(jobOf(claim));
    const taken = await consumer.take(new AbortController().signal);
    expect(taken?.job.runId).toBe('run_1');
    expect(await taken?.complete()).toBe('completed');
    await fleet.flushes.add('run_1');
    await expect.poll(() => flushed).toEqual(['run_1']);
  } finally {
    await consumer.stop();
    await worker.stop();
    await fleet.close();
  }
});

it('a fleet with another password is told so', async () => {
  await expect(open({ password: 'wrong' })).rejects.toMatchObject({ code: 'REDIS_AUTH' });
});

it('a server of an authority that nobody has named is not spoken to', async () => {
  const connection = openRedis({ ...settings, tls: {} }, { use: 'commands', log: silent, name: 'test' });
  try {
    const [error] = (await once(connection, 'error')) as [Error];
    expect(error).toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  } finally {
    await closeRedis(connection);
  }
});
