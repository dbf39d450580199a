import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createConnection, createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { openFleet, type Fleet, type RunsConsumer, type TakenRun } from '../../../src/queue/fleet.js';
import { checkRedis, closeRedis, openRedis } from '../../../src/queue/redis.js';
import { generateFleetKey, parseFleetKeys } from '../../../src/queue/seal.js';
import { jobOf, openTestFleet, silent, someClaim, startedRun } from '../../support/fleet.js';
import { startProgram } from '../../support/program.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';

const never = new AbortController().signal;
const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function ownRedis(options: Parameters<typeof startTestRedis>[0] = {}): Promise<TestRedis> {
  const redis = await startTestRedis(options);
  cleanUps.push(() => redis.stop());
  return redis;
}

async function ownFleet(redis: TestRedis): Promise<Fleet> {
  const fleet = await openTestFleet(redis);
  cleanUps.push(() => fleet.close());
  return fleet;
}

/** A consumer that has found nothing and waits now in a blocking read. */
async function waitingConsumer(fleet: Fleet, redis: TestRedis): Promise<{ taking: Promise<TakenRun> }> {
  const consumer = fleet.runs.consumer('default', { lockMs: 60_000, stalledCheckMs: 12_000 });
  consumer.start();
  await consumer.take(never);
  const taking = takeOne(consumer);
  while (!/blocked_clients:[1-9]/.test(String(await redis.cli('INFO', 'clients'))));
  return { taking };
}

async function takeOne(consumer: RunsConsumer): Promise<TakenRun> {
  // A take in vain waits for 5 s, unless the consumer has been closed.
  for (let tries = 0; tries < 20; tries += 1) {
    const taken = await consumer.take(never);
    if (taken !== null) return taken;
  }
  throw new Error('There was no run to take.');
}

describe('a consumer that waits', () => {
  it('goes on after its connections were cut (P1)', async () => {
    const redis = await ownRedis();
    const fleet = await ownFleet(redis);
    const { taking } = await waitingConsumer(fleet, redis);
    await redis.cli('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await fleet.runs.add(jobOf(someClaim({ runId: 'run_1' })));
    expect((await taking).job.runId).toBe('run_1');
  });

  it('goes on after Redis was restarted, as producers do (P2)', async () => {
    const redis = await ownRedis({ appendonly: true });
    const fleet = await ownFleet(redis);
    const { taking } = await waitingConsumer(fleet, redis);
    await redis.shutdown();
    const adding = fleet.runs.add(jobOf(someClaim({ runId: 'run_1' })));
    await redis.start();
    await adding;
    expect((await taking).job.runId).toBe('run_1');
  });

  it('makes its connection anew when a blocking read never returns (P1)', async () => {
    const redis = await ownRedis();
    const gate = await startGate(redis.socketPath);
    const keys = parseFleetKeys(generateFleetKey());
    const fleet = await openFleet({ name: 'test', redis: { url: `unix://${gate.path}` }, keys, log: silent });
    cleanUps.push(() => fleet.close());
    const { taking } = await waitingConsumer(fleet, redis);
    const blocked = String(await redis.cli('CLIENT', 'LIST'))
      .split('\n')
      .find((line) => line.includes('cmd=bzpopmin'));
    expect(blocked).toContain('name=boardwalk-fleet:take:runs.default');
    gate.silence('take:runs.default');
    await fleet.runs.add(jobOf(someClaim({ runId: 'run_1' })));
    expect((await taking).job.runId).toBe('run_1');
  });
});

describe('a fetch whose answer is lost with its connection', () => {
  it('leaves no run behind that has to wait for the end of its lock (P1, P30)', async () => {
    const redis = await ownRedis();
    const gate = await startGate(redis.socketPath);
    const keys = parseFleetKeys(generateFleetKey());
    const fleet = await openFleet({ name: 'test', redis: { url: `unix://${gate.path}` }, keys, log: silent });
    cleanUps.push(() => fleet.close());
    const consumer = fleet.runs.consumer('default', { lockMs: 60_000, stalledCheckMs: 12_000 });
    consumer.start();
    await consumer.take(never);
    for (const runId of ['run_1', 'run_2']) await fleet.runs.add(jobOf(someClaim({ runId })));
    gate.loseAnswer('queues');
    const taken = [await takeOne(consumer), await takeOne(consumer)];
    expect(taken.map(({ job }) => job.runId).sort()).toEqual(['run_1', 'run_2']);
    for (const each of taken) expect(await each.complete()).toBe('completed');
    expect(await fleet.runs.depth('default')).toEqual({ waiting: 0, active: 0, delayed: 0 });
    expect(gate.lost()).toBe(1);
  });
});

describe('commands', () => {
  it('wait while Redis is away and are sent once it is back', async () => {
    const redis = await ownRedis({ appendonly: true });
    const fleet = await ownFleet(redis);
    const { runId } = await startedRun(fleet, 'mine');
    await redis.kill();
    const appending = fleet.lanes.append(runId, 'mine', [{ cursor: 1, frame: 'row' }]);
    const finishing = fleet.lanes.appendFinalize(runId, 'mine', '{}');
    await redis.start();
    expect(await appending).toMatchObject({ outcome: 'appended', rows: 1 });
    expect(await finishing).toMatchObject({ outcome: 'appended' });
  });

  it('that are resent after a cut change nothing twice', async () => {
    const redis = await ownRedis();
    const fleet = await ownFleet(redis);
    const claim = await startedRun(fleet, 'mine');
    // The server executes what it gets during its sleep, and the answers go to connections that are cut by then.
    const sleeping = redis.cli('DEBUG', 'SLEEP', '0.3');
    const work = Promise.all([
      fleet.runStates.startAttempt({ ...claim, executorId: 'e', attemptToken: 'next' }),
      fleet.lanes.append(claim.runId, 'next', [{ cursor: 1, frame: 'row' }]),
      fleet.lanes.append(claim.runId, 'next', [{ cursor: 2, frame: 'row' }]),
      fleet.lanes.appendFinalize(claim.runId, 'next', '{}'),
    ]);
    await cutSoon(fleet);
    await sleeping;
    const [started, , , finalized] = await work;
    expect(['started', 'finalizing']).toContain(started.outcome);
    expect(['appended', 'repeated']).toContain(finalized.outcome);
    expect(await fleet.runStates.get(claim.runId)).toMatchObject({ attempt: 2, phase: 'finishing' });
    const head = await fleet.lanes.head(claim.runId, { maxRows: 10, maxBytes: 1_000 });
    expect(head.map((entry) => entry.id)).toEqual(['1-0', '2-0', '2-1']);
  });

  it('find a server that has never seen the scripts (P1)', async () => {
    const redis = await ownRedis();
    const fleet = await ownFleet(redis);
    const { runId } = await startedRun(fleet, 'mine');
    await redis.cli('SCRIPT', 'FLUSH');
    expect(await fleet.lanes.append(runId, 'mine', [{ cursor: 1, frame: 'row' }])).toMatchObject({
      outcome: 'appended',
    });
  });
});

describe('a Redis that is full', () => {
  it('still lets go of what has shipped, so that it gets better again (P8)', async () => {
    const redis = await ownRedis();
    const fleet = await ownFleet(redis);
    const [long, done] = [await startedRun(fleet, 'mine'), await startedRun(fleet, 'mine')];
    const rows = Array.from({ length: 100 }, (_, index) => ({
      cursor: index + 1,
      frame: 'x'.repeat(10_000),
    }));
    for (const { runId } of [long, done]) await fleet.lanes.append(runId, 'mine', rows);
    await fleet.lanes.appendFinalize(done.runId, 'mine', '{}');
    await redis.cli('CONFIG', 'SET', 'maxmemory', '1mb');

    await expect(fleet.lanes.append(long.runId, 'mine', [{ cursor: 101, frame: 'x' }])).rejects.toThrow(
      /OOM/,
    );
    expect(await fleet.lanes.trim(long.runId, '100-0')).toEqual({ left: 0 });
    const end = { status: 'completed', answer: 'acknowledged' } as const;
    expect(await fleet.runStates.finish(done.runId, done.leaseId, end)).toBe('finished');
  });
});

describe('a connection', () => {
  it('keeps trying when the name of its server does not resolve (P3)', async () => {
    const redis = openRedis(
      { url: 'redis://redis.invalid:6379' },
      { use: 'commands', log: silent, name: 'test' },
    );
    cleanUps.push(() => closeRedis(redis));
    let attempts = 0;
    await new Promise<void>((resolve) => redis.on('reconnecting', () => ++attempts === 4 && resolve()));
    expect(redis.status).not.toBe('end');
  });
});

describe('closing', () => {
  it('leaves nothing that keeps the process alive (P21, P22)', async () => {
    const redis = await ownRedis();
    const program = startProgram('openAndClose', redis.url);
    expect(await program.line()).toBe('closed');
    expect(await program.ended).toBe(0);
    expect(
      String(await redis.cli('CLIENT', 'LIST'))
        .trim()
        .split('\n'),
    ).toHaveLength(1);
  });

  it('ends while Redis is away, too (P22)', async () => {
    const redis = await ownRedis();
    const program = startProgram('openAndClose', redis.url, 'gone');
    expect(await program.line()).toBe('ready');
    await redis.kill();
    program.process.stdin.write('go\n');
    expect(await program.line()).toBe('closed');
    expect(await program.ended).toBe(0);
  });
});

describe('a Redis that a fleet cannot be trusted to', () => {
  const checked = async (redis: TestRedis, settings: { username?: string; password?: string } = {}) => {
    const client = openRedis(
      { ...redis.settings, ...settings },
      { use: 'commands', log: silent, name: 'check' },
    );
    cleanUps.push(() => closeRedis(client));
    return checkRedis(client, { timeoutMs: 1_000 });
  };

  it('is one that does not answer', async () => {
    const redis = await ownRedis();
    await redis.kill();
    const refusal: unknown = await checked(redis).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'REDIS_UNREACHABLE' });
    expect(deepText(refusal)).toContain(redis.socketPath);
  });

  it('is one that refuses the login, whose password nobody gets to see', async () => {
    const redis = await ownRedis({ args: ['--requirepass', 'right-password'] });
    await expect(checked(redis)).rejects.toMatchObject({
      code: 'REDIS_AUTH',
      message: expect.stringContaining('needs a password') as string,
      hint: expect.stringContaining('BOARDWALK_FLEET_REDIS_PASSWORD') as string,
    });
    const refusal: unknown = await checked(redis, { password: 'wrong-password' }).catch(
      (error: unknown) => error,
    );
    expect(refusal).toMatchObject({ code: 'REDIS_AUTH' });
    expect(deepText(refusal)).not.toContain('wrong-password');
    expect(await checked(redis, { password: 'right-password' })).toHaveLength(1);
  });

  it('is none at all: another server answers there', async () => {
    const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanUps.push(() => Promise.resolve(server.close()));
    const { port } = server.address() as AddressInfo;
    const client = openRedis(
      { url: `redis://127.0.0.1:${port}` },
      { use: 'commands', log: silent, name: 'check' },
    );
    cleanUps.push(() => closeRedis(client));
    await expect(checkRedis(client)).rejects.toMatchObject({ code: 'REDIS_OTHER_SERVER' });
  });

  it('is one that throws keys away when memory is short (P6)', async () => {
    const redis = await ownRedis({ args: ['--maxmemory-policy', 'allkeys-lru'] });
    await expect(checked(redis)).rejects.toMatchObject({ code: 'REDIS_EVICTION' });
  });

  it('without an append-only file is only warned about, with one not', async () => {
    expect(await checked(await ownRedis())).toEqual([expect.stringContaining('append-only')]);
    expect(await checked(await ownRedis({ appendonly: true }))).toEqual([]);
  });

  it('may hide its settings', async () => {
    const redis = await ownRedis();
    await redis.cli('ACL', 'SETUSER', 'limited', 'on', '>pass', '~*', '&*', '+@all', '-info', '-config');
    expect(await checked(redis, { username: 'limited', password: 'pass' })).toEqual([
      expect.stringContaining('INFO'),
    ]);
  });
});

/** Everything in an error that a logger could find. */
function deepText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return [error.message, error.stack, JSON.stringify(error), deepText(error.cause)].join('\n');
}

/** Cuts the fleet's command connection from our side, with commands on it. */
async function cutSoon(fleet: Fleet): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  fleet.redis.disconnect(true);
}

interface Gate {
  readonly path: string;
  /** Nothing passes any more, but nothing is closed: a half-open connection. */
  silence(clientName: string): void;
  /** The next answer does not arrive: the connection is cut in its place. */
  loseAnswer(clientName: string): void;
  lost(): number;
}

/** A socket in front of Redis that can be unkind to one client. */
async function startGate(target: string): Promise<Gate> {
  const path = target.replace('r.sock', 'g.sock');
  const names = new Map<Socket, string>();
  const silenced = new Set<Socket>();
  const losing = new Set<Socket>();
  let lost = 0;
  const gate = createServer((client) => {
    const server = createConnection(target);
    client.on('data', (data) => {
      if (silenced.has(client)) return;
      names.set(client, (names.get(client) ?? '') + data.toString('latin1').slice(0, 1_000));
      server.write(data);
    });
    server.on('data', (data) => {
      if (losing.delete(client)) {
        lost += 1;
        client.destroy();
        return;
      }
      if (!silenced.has(client)) client.write(data);
    });
    client.on('close', () => server.destroy());
    server.on('close', () => {
      if (!silenced.has(client)) client.destroy();
    });
    client.on('error', () => undefined);
    server.on('error', () => undefined);
  });
  gate.listen(path);
  await once(gate, 'listening');
  cleanUps.push(async () => {
    for (const client of names.keys()) client.destroy();
    gate.close();
    await rm(path, { force: true });
  });
  const named = (clientName: string): Socket[] =>
    [...names].filter(([, said]) => said.includes(clientName)).map(([client]) => client);
  return {
    path,
    silence: (clientName) => {
      for (const client of named(clientName)) silenced.add(client);
    },
    loseAnswer: (clientName) => {
      for (const client of named(clientName)) losing.add(client);
    },
    lost: () => lost,
  };
}
