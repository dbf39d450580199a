// Which proxy a call goes through, as HTTP_PROXY, HTTPS_PROXY and NO_PROXY say it. It guards against two of the ways in
// which such settings go wrong (P44): this machine's own addresses sent to a proxy that can't know them, and a proxy's
// password in a log. How calls get through is in `connections.ts`.
//
// Read from an environment that is handed in, so that Node's own switch (NODE_USE_ENV_PROXY) changes nothing here.
import { isIPv6 } from 'node:net';
import { OperatorError } from '../contract/operatorError.js';

type Environment = Readonly<Record<string, string | undefined>>;

const VARIABLES: Readonly<Record<string, string>> = { 'http:': 'HTTP_PROXY', 'https:': 'HTTPS_PROXY' };
const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

/** A proxy that a variable names. */
export interface Proxy {
  readonly origin: string;
  /** For people: `proxy.example:3128 (HTTPS_PROXY)`. */
  readonly name: string;
  /** What it gets as `Proxy-Authorization`; `undefined`: it wants none. */
  readonly authorization: string | undefined;
  /** Texts that no error may quote: its page about a refusal may repeat what it was sent. */
  readonly secrets: readonly string[];
}

interface Exception {
  readonly host: string;
  /** '' = any. */
  readonly port: string;
}

/** What an environment says about proxies. */
export class ProxySettings {
  readonly #proxies = new Map<string, Proxy>();
  readonly #exceptions: readonly Exception[];

  /**
   * @param environment its `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`; in small letters they come first, as in curl
   * @throws OperatorError `SETTING_INVALID` for an address that can't be a proxy
   */
  constructor(environment: Environment) {
    this.#exceptions = exceptionsOf(valueOf(environment, 'NO_PROXY')?.value ?? '');
    for (const [protocol, variable] of Object.entries(VARIABLES)) {
      const found = valueOf(environment, variable);
      if (found !== undefined) this.#proxies.set(protocol, proxyAt(found.variable, found.value));
    }
  }

  /** Of all proxies. */
  get secrets(): readonly string[] {
    return [...this.#proxies.values()].flatMap(({ secrets }) => secrets);
  }

  /** The proxy that a call to this address goes through; `undefined`: none. */
  proxyFor({ protocol, hostname, port }: URL): Proxy | undefined {
    const host = hostname.toLowerCase().replace(/\.$/, '');
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
      // Its last group is no port; in a URL it stands in brackets.
      if (isIPv6(entry)) return { host: `[${entry}]`, port: '' };
      const [, host = entry, port = ''] = /^(.+?)(?::(\d+))?$/.exec(entry) ?? [];
      return { host: host === '*' ? host : host.replace(/^\*?\./, ''), port };
    });
}

function proxyAt(variable: string, value: string): Proxy {
  // As curl takes it: without a scheme it is a plain proxy.
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const credentials = url === undefined ? undefined : credentialsOf(url);
  if (
    url === undefined ||
    credentials === undefined ||
    DEFAULT_PORTS[url.protocol] === undefined ||
    url.hostname === ''
  )
    // The value stays out of the error: it may hold a password.
    throw new OperatorError('SETTING_INVALID', `${variable}: the value is no address of a proxy.`, {
      hint:
        'It must be http://HOST:PORT or https://HOST:PORT, with USER:PASSWORD@ before the host where the proxy wants it ' +
        '(special characters as %XX).',
      usage: true,
    });
  const { user, password } = credentials;
  const name = `${url.host} (${variable})`;
  if (user === '' && password === '')
    return { origin: url.origin, name, authorization: undefined, secrets: [] };
  const pair = Buffer.from(`${user}:${password}`).toString('base64');
  return { origin: url.origin, name, authorization: `Basic ${pair}`, secrets: [pair, password] };
}

/** `undefined`: a % in them begins no character. */
function credentialsOf({
  username,
  password,
}: URL): { readonly user: string; readonly password: string } | undefined {
  try {
    return { user: decodeURIComponent(username), password: decodeURIComponent(password) };
  } catch {
    return undefined;
  }
}
