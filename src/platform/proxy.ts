// Which proxy a call goes through, as HTTP_PROXY, HTTPS_PROXY and NO_PROXY say it. It guards against the three ways in
// which such settings go wrong (P44): this machine's own addresses sent to a proxy that can't know them, a proxy's
// password in a log, and an error that blames the control plane for what the proxy refused.
//
// Read from an environment that is handed in, so that Node's own switch (NODE_USE_ENV_PROXY) changes nothing here.
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import { OperatorError } from '../contract/operatorError.js';

type Environment = Readonly<Record<string, string | undefined>>;

const PROTOCOLS = ['http:', 'https:'] as const;
const VARIABLES: Readonly<Record<string, string>> = { 'http:': 'HTTP_PROXY', 'https:': 'HTTPS_PROXY' };
const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

interface Proxy {
  readonly agent: ProxyAgent;
  /** For people: `proxy.example:3128 (HTTPS_PROXY)`. */
  readonly name: string;
}

interface Exception {
  readonly host: string;
  /** '' = any. */
  readonly port: string;
}

/** The connections of a client: direct ones, and those through the proxies that its environment names. */
export class Connections {
  readonly #direct: Agent;
  readonly #proxies = new Map<string, Proxy>();
  readonly #exceptions: readonly Exception[];

  /**
   * @param environment its `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`; in small letters they come first, as in curl
   * @throws OperatorError `SETTING_INVALID` for an address that can't be a proxy
   */
  constructor(environment: Environment, options: Agent.Options & { readonly connectMs: number }) {
    const { connectMs, ...shared } = options;
    this.#direct = new Agent({ ...shared, connect: { timeout: connectMs } });
    this.#exceptions = exceptionsOf(valueOf(environment, 'NO_PROXY')?.value ?? '');
    for (const protocol of PROTOCOLS) {
      const found = valueOf(environment, VARIABLES[protocol] ?? '');
      if (found === undefined) continue;
      const url = proxyUrl(found.variable, found.value);
      const agent = new ProxyAgent({
        ...shared,
        uri: url.origin,
        ...tokenOf(url),
        // A plain call is handed to the proxy whole: many allow no tunnel to another port than 443.
        proxyTunnel: protocol === 'https:',
        requestTls: { timeout: connectMs },
        proxyTls: { timeout: connectMs },
      });
      this.#proxies.set(protocol, { agent, name: `${url.host} (${found.variable})` });
    }
  }

  dispatcherFor(url: URL): Dispatcher {
    return this.#proxyFor(url)?.agent ?? this.#direct;
  }

  /** The proxy that a call to this address goes through, without its credentials; `undefined`: none. */
  proxyNameFor(url: string): string | undefined {
    return URL.canParse(url) ? this.#proxyFor(new URL(url))?.name : undefined;
  }

  async destroy(): Promise<void> {
    const all: readonly Dispatcher[] = [
      this.#direct,
      ...[...this.#proxies.values()].map(({ agent }) => agent),
    ];
    await Promise.all(all.map((each) => each.destroy()));
  }

  #proxyFor({ protocol, hostname, port }: URL): Proxy | undefined {
    const host = hostname.toLowerCase();
    if (isOwn(host)) return undefined;
    const realPort = port === '' ? DEFAULT_PORTS[protocol] : port;
    const excepted = this.#exceptions.some(
      (each) =>
        (each.port === '' || each.port === realPort) &&
        (each.host === '*' || host === each.host || host.endsWith(`.${each.host}`)),
    );
    return excepted ? undefined : this.#proxies.get(protocol);
  }
}

/** This machine itself: no proxy can reach it. */
function isOwn(host: string): boolean {
  return (
    host === 'localhost' || host.endsWith('.localhost') || host === '[::1]' || /^127(?:\.\d+){3}$/.test(host)
  );
}

function valueOf(
  environment: Environment,
  name: string,
): { readonly variable: string; readonly value: string } | undefined {
  for (const variable of [name.toLowerCase(), name]) {
    const value = environment[variable]?.trim();
    if (value !== undefined && value !== '') return { variable, value };
  }
  return undefined;
}

/** A host stands for all names below it, with or without a leading dot; addresses are compared as they are written. */
function exceptionsOf(value: string): readonly Exception[] {
  return value
    .toLowerCase()
    .split(/[,\s]+/)
    .filter((entry) => entry !== '')
    .map((entry) => {
      const [, host = entry, port = ''] = /^(.+?)(?::(\d+))?$/.exec(entry) ?? [];
      return { host: host === '*' ? host : host.replace(/^\*?\./, ''), port };
    });
}

/** The value stays out of the error: it may hold a password. */
function proxyUrl(variable: string, value: string): URL {
  // As curl takes it: without a scheme it is a plain proxy.
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  if (URL.canParse(text)) {
    const url = new URL(text);
    if (DEFAULT_PORTS[url.protocol] !== undefined && url.hostname !== '') return url;
  }
  throw new OperatorError('SETTING_INVALID', `${variable}: the value is no address of a proxy.`, {
    hint: 'It must be http://HOST:PORT or https://HOST:PORT, with USER:PASSWORD@ before the host where the proxy wants it.',
    usage: true,
  });
}

function tokenOf({ username, password }: URL): { readonly token?: string } {
  if (username === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { token: `Basic ${Buffer.from(pair).toString('base64')}` };
}
