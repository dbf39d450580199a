// Where Redis is, from settings to the client's options. It guards against an address that silently means something
// else (a port that isn't one, a password with a slash in it) and against a password that shows up in a message.
// Sentinel and cluster will be further settings here; nothing else needs to know.

import { isIP } from 'node:net';
import type { RedisOptions } from 'ioredis';
import { OperatorError } from '../contract/operatorError.js';

export interface RedisSettings {
  /** `redis://host:port/db`, `rediss://…` (TLS) or `unix:///path/to/socket`; user and password may stand in it. */
  readonly url: string;
  /** Win over those in the URL. */
  readonly username?: string;
  readonly password?: string;
  /** PEM texts, not paths. Given at all, it turns TLS on. */
  readonly tls?: {
    readonly ca?: string;
    readonly cert?: string;
    readonly key?: string;
    readonly servername?: string;
    readonly rejectUnauthorized?: boolean;
  };
}

/** The client's options as they are set here; how replies are mapped is never touched. */
export type ConnectionOptions = Omit<RedisOptions, 'replyMapping'>;

const DEFAULT_PORT = 6379;

/** @throws OperatorError `REDIS_URL_INVALID` */
export function redisAddress(settings: RedisSettings): ConnectionOptions {
  const url = parseUrl(settings.url);
  const username = settings.username ?? decoded(url.username);
  const password = settings.password ?? decoded(url.password);
  return {
    ...(url.protocol === 'unix:' ? socketAddress(url) : networkAddress(url, settings)),
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
  };
}

function socketAddress(url: URL): ConnectionOptions {
  const path = decoded(url.pathname);
  if (url.hostname !== '' || path.length < 2)
    throw invalidUrl('A Unix socket is written as unix:///path/to/socket.');
  return { path, db: database(url.searchParams.get('db') ?? '') };
}

function networkAddress(url: URL, settings: RedisSettings): ConnectionOptions {
  if (url.hostname === '') throw invalidUrl('It names no host.');
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const tls = url.protocol === 'rediss:' || settings.tls !== undefined;
  return {
    host,
    port: url.port === '' ? DEFAULT_PORT : Number(url.port),
    db: database(url.pathname.replace(/^\//, '')),
    // The certificate is checked against the name that was asked for, unless another is set; TLS knows names only.
    ...(tls ? { tls: { ...(isIP(host) === 0 ? { servername: host } : {}), ...settings.tls } } : {}),
  };
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['redis:', 'rediss:', 'unix:'].includes(url.protocol)) {
    throw invalidUrl(
      'It must start with redis://, rediss:// or unix://, and special characters in it be %-encoded.',
    );
  }
  return url;
}

function database(text: string): number {
  if (!/^\d{0,5}$/.test(text)) throw invalidUrl('The database after the slash must be a number.');
  return Number(text);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalidUrl('A % in it must be written as %25.');
  }
}

function invalidUrl(why: string): OperatorError {
  return new OperatorError('REDIS_URL_INVALID', `The Redis URL can't be used. ${why}`, {
    hint: 'For example redis://127.0.0.1:6379/0, rediss://user:password@redis.example.com:6380 or unix:///run/redis.sock.',
  });
}

/** The address in words, without user and password. */
export function describeRedis(options: {
  readonly path?: string | undefined;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
}): string {
  return options.path ?? `${options.host ?? '127.0.0.1'}:${options.port ?? DEFAULT_PORT}`;
}
