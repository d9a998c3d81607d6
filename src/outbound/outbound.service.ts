import { lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import type { Settings } from '../config/settings.js';
import { AddressGuard } from './address-guard.js';
import { attemptMsOf } from './attempt-time.js';
import type { Connector } from './connector.js';
import { EgressProxy } from './egress-proxy.js';
import { lookupBoundsOf } from './lookup-bounds.js';
import { ProxyExceptions } from './proxy-exceptions.js';
import { AddressRefused, Refused } from './refused.js';
import { sharedLookup, type SharedLookup } from './shared-lookup.js';
import { Tunnel } from './tunnel.js';
import { UrlRules, type Callable } from './url-rules.js';

/** By which this side proves itself to a receiver, and knows it; each in PEM. */
export interface TlsIdentity {
  /** With the certificates between it and its authority. */
  certificate?: string;
  /** Of `certificate`. */
  key?: string;
  /** Instead of the authorities that Node trusts. */
  authority?: string;
}

/** Every connection to an address that somebody else has named is made here, under the address guard. */
export class Outbound {
  private readonly guard: AddressGuard;
  private readonly rules: UrlRules;
  private readonly shared: SharedLookup;
  private readonly lookUp: LookupFunction;
  private readonly proxy: EgressProxy | undefined;
  private readonly exceptions: ProxyExceptions;

  /** @param lookUp asks for the addresses of a name */
  constructor(settings: Settings, lookUp: LookupFunction = lookup) {
    this.guard = new AddressGuard(settings);
    this.rules = new UrlRules(settings);
    this.shared = sharedLookup(lookUp, lookupBoundsOf(settings.UV_THREADPOOL_SIZE));
    this.lookUp = this.guard.guarded(this.shared.lookUp);
    this.proxy = settings.EGRESS_PROXY_URL === undefined ? undefined : new EgressProxy(settings.EGRESS_PROXY_URL);
    this.exceptions = new ProxyExceptions(settings.EGRESS_PROXY_EXCEPTIONS);
  }

  /**
   * Connectors share nothing, TLS sessions neither: each is for the holders of one identity.
   * @param timeoutMs 0: none; the caller destroys what it was given when its time is up
   */
  connectorFor({ certificate: cert, key, authority: ca }: TlsIdentity = {}, timeoutMs = 0): Connector {
    const { proxy, lookUp, exceptions } = this;
    const byAttemptMs = new Map<number, Connector>();
    const connect: Connector = (options, connected) => {
      const attemptMs = attemptMsOf(options.limitMs ?? timeoutMs);
      let made = byAttemptMs.get(attemptMs);
      if (!made) {
        const parts = { timeout: timeoutMs, lookup: lookUp, autoSelectFamilyAttemptTimeout: attemptMs, cert, key, ca };
        // Its type does not say so, but it returns the socket.
        byAttemptMs.set(attemptMs, (made = buildConnector(parts) as Connector));
      }
      return made(options, connected);
    };
    const means = proxy && { proxy, lookUp, connect, timeoutMs, isDirect: (ip: string) => exceptions.hasAddress(ip) };
    return (options, connected) => {
      const refused = this.refused(options);
      if (refused) {
        connected(refused, null);
        return undefined;
      }
      if (!means || exceptions.hasName(options.hostname)) return connect(options, connected);
      return new Tunnel(options, connected, means);
    };
  }

  /** Whether it would be refused now; undefined: it would not, or its name has no address now. */
  async refusalOf(url: URL): Promise<Refused | undefined> {
    const refused = this.refused(url);
    const isAddress = isIP(url.hostname) !== 0 || url.hostname.startsWith('[');
    if (refused || isAddress) return refused;
    return new Promise((resolve) => {
      this.lookUp(url.hostname, { all: true }, (error) => resolve(error instanceof Refused ? error : undefined));
    });
  }

  /**
   * For how long the egress proxy has failed for that `address:port`, in milliseconds; 0: it has not, or there is none.
   */
  proxyFailingMs(authority: string): number {
    return this.proxy?.failingMs(authority) ?? 0;
  }

  /** Whether nobody is asked for its addresses yet, because too many other names are being looked up. */
  isInLine(hostname: string): boolean {
    return this.shared.isInLine(hostname);
  }

  /** Whether anybody on the internet can call this address too, so that what comes of a call is no secret of ours. */
  isPublic(address: string): boolean {
    return this.guard.isPublic(address);
  }

  /** Nobody said which networks callbacks may use, and this is the embedded default. */
  get isLoopbackAllowed(): boolean {
    return this.guard.isLoopbackAllowed;
  }

  private refused(url: Callable): Refused | undefined {
    const refused = this.rules.refusalOf(url);
    if (refused) return refused;
    // Node looks up no host that is an address already.
    return this.guard.isRefusedHost(url.hostname) ? new AddressRefused(url.hostname) : undefined;
  }
}
