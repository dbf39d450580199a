// From settings to a fleet in Redis: the connection, its key, and the checks that are made before anything is claimed.

import { randomUUID } from 'node:crypto';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { OperatorError } from '../contract/operatorError.js';
import { startEmbeddedRedis } from '../dev/embeddedRedis.js';
import { openFleet, type Fleet } from '../queue/fleet.js';
import type { RedisSettings } from '../queue/redis.js';
import { generateFleetKey, parseFleetKeys, type FleetKey } from '../queue/seal.js';
import { usableDirectory } from './directories.js';
import type { REDIS_SETTINGS, Settings } from './settings.js';

type RedisSettingValues = Settings<(typeof REDIS_SETTINGS)[number]>;

export interface OpenedFleet {
  readonly fleet: Fleet;
  /** Settles only when the embedded Redis has ended by itself; a remote one is waited for. */
  readonly died: Promise<OperatorError>;
  /** Closes the connections, then the embedded Redis if there is one. */
  close(): Promise<void>;
}

/** The fleet behind `--redis-url`. @throws OperatorError for an unreachable Redis and an unreadable key */
export async function openRemoteFleet(
  values: RedisSettingValues & { readonly redisUrl: string; readonly fleetKeyFile: string },
  log: Logger,
): Promise<OpenedFleet> {
  const keys = await readFleetKeys(values.fleetKeyFile);
  const redis: RedisSettings = {
    url: values.redisUrl,
    ...(values.redisUsername === undefined ? {} : { username: values.redisUsername }),
    ...(values.redisPassword === undefined ? {} : { password: values.redisPassword }),
    ...(values.redisTlsCa === undefined
      ? {}
      : { tls: { ca: await readText('--redis-tls-ca', values.redisTlsCa) } }),
  };
  const fleet = await openFleet({ name: values.fleet, redis, keys, log });
  return { fleet, died: new Promise(() => undefined), close: () => fleet.close() };
}

const OTHER_DIRECTORY = 'Name a directory that you may write to with --work-dir.';

/** A Redis of our own below `dir`, with its key beside it (0600): nobody else can need either. */
export async function openEmbeddedFleet(fleetName: string, dir: string, log: Logger): Promise<OpenedFleet> {
  await usableDirectory(dir, 'directory of the embedded Redis', OTHER_DIRECTORY);
  const keys = await ownFleetKey(join(dir, 'fleet.key'));
  const server = await startEmbeddedRedis({ dir, log });
  try {
    const fleet = await openFleet({ name: fleetName, redis: { url: server.url }, keys, log });
    return {
      fleet,
      died: server.died,
      close: async () => {
        await fleet.close();
        await server.stop();
      },
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function readFleetKeys(file: string): Promise<readonly FleetKey[]> {
  const text = await readText('--fleet-key-file', file);
  try {
    return parseFleetKeys(text);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    throw new OperatorError(error.code, `--fleet-key-file ${file}: ${error.message}`, {
      ...(error.hint === undefined ? {} : { hint: error.hint }),
      usage: true,
      cause: error,
    });
  }
}

async function ownFleetKey(file: string): Promise<readonly FleetKey[]> {
  try {
    return parseFleetKeys(await readFile(file, 'utf8'));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  await writeFile(file, `${generateFleetKey()}\n`, { mode: 0o600, flag: 'wx' });
  await chmod(file, 0o600);
  return parseFleetKeys(await readFile(file, 'utf8'));
}

async function readText(setting: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new OperatorError('SETTING_INVALID', `${setting}: the file ${file} can't be read (${why}).`, {
      usage: true,
      cause: error,
    });
  }
}

/** A name for one executor process: the host for a person, the rest so that two on a host differ. */
export function executorId(host: string): string {
  return `${host.replace(/[^A-Za-z0-9.-]/g, '-').slice(0, 60)}-${randomUUID().slice(0, 8)}`;
}
