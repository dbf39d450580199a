// The connections of a client, direct ones and those through proxies. It guards against an error that blames the control
// plane for what a proxy refused (P44), and against a proxy that keeps a call from ever ending: one that stays silent, or
// that hangs up on a tunnel. The HTTP library's own proxy client waits minutes for the first, dials the second again
// without a pause, and in both cases the call's own clock can't end it; so tunnels are opened here.
import { Socket } from 'node:net';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import { type Proxy, ProxySettings } from './proxy.js';

/** A proxy did not let a call through: it never reached its address. */
export class ProxyFailure extends Error {
  override readonly name = 'ProxyFailure';

  /** @param status what the proxy answered; `undefined`: nothing, for the reason in `cause` */
  constructor(
    readonly proxy: Proxy,
    readonly status: number | undefined,
    cause?: unknown,
  ) {
    super(status === undefined ? 'no tunnel' : `the proxy answers ${status}`, { cause });
  }
}

export interface ConnectionOptions {
  readonly keepAliveTimeout: number;
  readonly keepAliveMaxTimeout: number;
  readonly pipelining: number;
  /** For TCP and TLS; and for all that opens a tunnel, before its TLS. */
  readonly connectMs: number;
}

/** A request without its address. */
export type Outgoing = Omit<Dispatcher.RequestOptions, 'origin' | 'path' | 'headers'> & {
  readonly headers: Readonly<Record<string, string>>;
};

export class Connections {
  readonly #settings: ProxySettings;
  readonly #options: ConnectionOptions;
  readonly #direct: Agent;
  readonly #toProxies: Agent;
  readonly #tunnels = new Map<Proxy, Agent>();

  /**
   * @param environment see `ProxySettings`
   * @throws OperatorError `SETTING_INVALID` for an address that can't be a proxy
   */
  constructor(environment: Readonly<Record<string, string | undefined>>, options: ConnectionOptions) {
    this.#settings = new ProxySettings(environment);
    this.#options = options;
    const connect = buildConnector({ timeout: options.connectMs });
    this.#direct = this.#agent(connect);
    // A request is named after its target; a proxy's certificate must be the proxy's.
    this.#toProxies = this.#agent(({ servername: _ofTarget, ...place }, callback) =>
      connect(place, callback),
    );
  }

  /** The proxy that a call to this address goes through; `undefined`: none. */
  proxyFor(url: string): Proxy | undefined {
    return URL.canParse(url) ? this.#settings.proxyFor(new URL(url)) : undefined;
  }

  /** Texts that no error may quote. */
  get secrets(): readonly string[] {
    return this.#settings.secrets;
  }

  /** @throws ProxyFailure when a proxy did not let it through; else what the HTTP library throws */
  async request(url: URL, outgoing: Outgoing): Promise<Dispatcher.ResponseData> {
    const path = `${url.pathname}${url.search}`;
    const proxy = this.#settings.proxyFor(url);
    if (proxy === undefined) return this.#direct.request({ ...outgoing, origin: url.origin, path });
    if (url.protocol === 'https:')
      return this.#tunnelsOf(proxy).request({ ...outgoing, origin: url.origin, path });
    // Handed to the proxy whole: many allow no tunnel to another port than 443.
    const response = await this.#toProxies.request({
      ...outgoing,
      origin: proxy.origin,
      path: `${url.origin}${path}`,
      headers: { ...outgoing.headers, host: url.host, ...authorizationFor(proxy) },
    });
    if (response.statusCode !== 407) return response;
    await response.body.dump().catch(() => undefined);
    throw new ProxyFailure(proxy, 407);
  }

  /** Cuts what is in flight. */
  async destroy(): Promise<void> {
    await Promise.all(
      [this.#direct, this.#toProxies, ...this.#tunnels.values()].map((each) => each.destroy()),
    );
  }

  #agent(connect: buildConnector.connector): Agent {
    const { keepAliveTimeout, keepAliveMaxTimeout, pipelining } = this.#options;
    return new Agent({ keepAliveTimeout, keepAliveMaxTimeout, pipelining, connect });
  }

  #tunnelsOf(proxy: Proxy): Agent {
    const known = this.#tunnels.get(proxy);
    if (known !== undefined) return known;
    const secure = buildConnector({ timeout: this.#options.connectMs });
    const agent = this.#agent((place, callback) => {
      this.#open(proxy, place.port === '' ? `${place.host ?? place.hostname}:443` : (place.host ?? ''))
        .then((httpSocket) => secure({ ...place, httpSocket }, callback))
        .catch((error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null));
    });
    this.#tunnels.set(proxy, agent);
    return agent;
  }

  async #open(proxy: Proxy, target: string): Promise<Socket> {
    const { statusCode, socket } = await this.#toProxies
      .connect({
        origin: proxy.origin,
        path: target,
        headers: { host: target, ...authorizationFor(proxy) },
        signal: AbortSignal.timeout(this.#options.connectMs),
      })
      .catch((error: unknown) => {
        // Never as it is: an error that says "closed by the other side" makes the library dial again, without a pause.
        throw new ProxyFailure(proxy, undefined, error);
      });
    if (statusCode >= 200 && statusCode < 300 && socket instanceof Socket) return socket;
    socket.on('error', () => undefined).destroy();
    throw new ProxyFailure(proxy, statusCode);
  }
}

function authorizationFor({ authorization }: Proxy): Readonly<Record<string, string>> {
  return authorization === undefined ? {} : { 'proxy-authorization': authorization };
}
