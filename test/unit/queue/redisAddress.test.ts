import { describe, expect, it } from 'vitest';
import { redisAddress } from '../../../src/queue/redisAddress.js';

describe('the address of Redis', () => {
  it('is a host, a port and a database', () => {
    expect(redisAddress({ url: 'redis://redis.example.com' })).toEqual({
      host: 'redis.example.com',
      port: 6379,
      db: 0,
    });
    expect(redisAddress({ url: 'redis://[::1]:7000/3' })).toEqual({ host: '::1', port: 7000, db: 3 });
  });

  it('is a Unix socket, with a database behind it', () => {
    expect(redisAddress({ url: 'unix:///run/my%20redis.sock?db=2' })).toEqual({
      path: '/run/my redis.sock',
      db: 2,
    });
  });

  it('takes user and password from the URL, and rather from the settings', () => {
    const url = 'redis://user:p%40ss@host';
    expect(redisAddress({ url })).toMatchObject({ username: 'user', password: 'p@ss' });
    expect(redisAddress({ url, username: 'other', password: 'word' })).toMatchObject({
      username: 'other',
      password: 'word',
    });
  });

  it('speaks TLS for rediss and for TLS settings, and checks the name that was asked for', () => {
    expect(redisAddress({ url: 'rediss://host' })).toMatchObject({ tls: { servername: 'host' } });
    expect(redisAddress({ url: 'redis://host', tls: { ca: 'PEM', servername: 'name' } })).toMatchObject({
      tls: { ca: 'PEM', servername: 'name' },
    });
    expect(redisAddress({ url: 'redis://host' })).not.toHaveProperty('tls');
    // An address is no name that TLS could send; the certificate is checked against it all the same.
    expect(redisAddress({ url: 'rediss://127.0.0.1' })).toMatchObject({ host: '127.0.0.1', tls: {} });
    expect(redisAddress({ url: 'rediss://[::1]' })).not.toHaveProperty('tls.servername');
  });

  it.each([
    'host:6379',
    'http://host',
    'redis://',
    'redis://host/zero',
    'unix://host/path',
    'unix:///',
    'redis://u:se%cret@host',
    'redis://u:secret/x@host:notaport',
  ])('is refused as %j without showing a password', (url) => {
    const refuse = () => redisAddress({ url });
    expect(refuse).toThrow(expect.objectContaining({ code: 'REDIS_URL_INVALID' }));
    expect(refuse).not.toThrow(/secret|se%cret/);
  });
});
