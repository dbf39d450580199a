// Where the container engine is. It guards against a fleet that starts without one and fails every run, and against a
// call that never returns because the engine hangs: whoever asks it here gives a time.

import { existsSync, readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { OperatorError } from '../../../contract/operatorError.js';
import { waitFor } from '../../../waiting/waiting.js';

type Environment = Readonly<Record<string, string | undefined>>;

const PING_MS = 5_000;
const SOCKET_URL = /^(?:unix|npipe):\/\//;

export interface Engine {
  readonly docker: Docker;
  /** For people: `unix:///var/run/docker.sock`. */
  readonly address: string;
}

/**
 * The engine that `DOCKER_HOST` names, else the first of the usual sockets that answers.
 *
 * @throws OperatorError `ENGINE_MISSING`, which names both ways out
 */
export async function findEngine(environment: Environment): Promise<Engine> {
  const named = environment['DOCKER_HOST'];
  const addresses =
    named === undefined || named === ''
      ? usualSockets(environment)
          .filter((path) => existsSync(path))
          .map((path) => `unix://${path}`)
      : [named];
  const troubles: string[] = [];
  for (const address of addresses) {
    const docker = clientOf(address, environment);
    try {
      await within(docker.ping(), PING_MS, 'answer');
      return { docker, address };
    } catch (error) {
      troubles.push(`${address}: ${engineErrorText(error)}`);
    }
  }
  const found = troubles.length === 0 ? 'none of the usual sockets is there' : troubles.join('; ');
  throw new OperatorError('ENGINE_MISSING', `No container engine answers (${found}).`, {
    hint:
      'Start Docker or Podman, or name its socket with DOCKER_HOST=unix:///path/to.sock.\n' +
      'Or pass --host to run programs as plain processes of this machine, without isolation.',
  });
}

/** @throws the engine's error, or one that says how long was waited */
export async function within<T>(call: Promise<T>, ms: number, what: string): Promise<T> {
  const answer = await waitFor(call, { ms });
  if (answer.outcome === 'settled') return answer.value;
  throw new Error(`the engine did not ${what} within ${ms / 1_000} s`);
}

/** What an engine said, in one bounded line. */
export function engineErrorText(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  if (code === 'EACCES') return 'this user may not use its socket (EACCES)';
  return text.replace(/\s+/g, ' ').trim().slice(0, 500);
}

/** HTTP status of an engine's refusal; `undefined`: it didn't answer. */
export function engineStatus(error: unknown): number | undefined {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number'
    ? error.statusCode
    : undefined;
}

function usualSockets({ XDG_RUNTIME_DIR: runtimeDir }: Environment): readonly string[] {
  return [
    '/var/run/docker.sock',
    ...(runtimeDir === undefined ? [] : [join(runtimeDir, 'docker.sock')]),
    join(homedir(), '.docker/run/docker.sock'),
    ...(runtimeDir === undefined ? [] : [join(runtimeDir, 'podman/podman.sock')]),
    '/run/podman/podman.sock',
  ];
}

function clientOf(address: string, environment: Environment): Docker {
  if (SOCKET_URL.test(address)) return new Docker(withAgent({ socketPath: address.replace(SOCKET_URL, '') }));
  if (!/^(?:tcp|https?):\/\//.test(address) || !URL.canParse(address)) throw unusable(address);
  const url = new URL(address.replace(/^tcp:/, 'http:'));
  const certificates = environment['DOCKER_CERT_PATH'];
  const secure = (environment['DOCKER_TLS_VERIFY'] ?? '') !== '' || url.protocol === 'https:';
  const port = url.port === '' ? (secure ? 2376 : 2375) : Number(url.port);
  if (!secure) return new Docker(withAgent({ protocol: 'http', host: url.hostname, port }));
  const read = (name: string): Buffer => {
    try {
      return readFileSync(join(certificates ?? join(homedir(), '.docker'), name));
    } catch (cause) {
      throw new OperatorError('ENGINE_MISSING', `DOCKER_CERT_PATH: ${name} can't be read.`, { cause });
    }
  };
  return new Docker({
    protocol: 'https',
    host: url.hostname,
    port,
    ca: read('ca.pem'),
    cert: read('cert.pem'),
    key: read('key.pem'),
  });
}

/** An agent of our own: Node's global one may be told to use a proxy (NODE_USE_ENV_PROXY). */
function withAgent(options: Docker.DockerOptions): Docker.DockerOptions & { readonly agent: Agent } {
  return { ...options, agent: new Agent() };
}

function unusable(address: string): OperatorError {
  return new OperatorError(
    'ENGINE_MISSING',
    `DOCKER_HOST: ${JSON.stringify(address.slice(0, 200))} is no address that can be used.`,
    {
      hint: 'It must be unix:///path/to.sock or tcp://HOST:PORT; or pass --host to run programs without containers.',
    },
  );
}
