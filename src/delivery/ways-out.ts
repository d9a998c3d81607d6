import { LRUCache } from 'lru-cache';
import type { NamedIdentity } from '../credentials/credentials.js';
import type { Connector } from '../outbound/connector.js';
import type { Outbound } from '../outbound/outbound.service.js';
import { KeptConnections } from './kept-connections.undici.js';

/** How receivers are reached with one TLS identity. */
interface WayOut {
  connector: Connector;
  kept: KeptConnections;
}

/** More subscriptions with certificates of their own than these still work, but keep fewer connections open. */
const mostIdentities = 1000;

/**
 * The ways to receivers, one for each TLS identity: over a connection that was made with one, no call is sent that has another, or none.
 * Calls without one, nearly all, share theirs.
 */
export class WaysOut {
  private readonly plain: WayOut;
  private readonly closing = new Set<Promise<void>>();
  private readonly byIdentity = new LRUCache<string, WayOut>({
    max: mostIdentities,
    dispose: ({ kept }, _, why) => {
      if (why !== 'evict') return;
      const closed = kept.finish().finally(() => this.closing.delete(closed));
      this.closing.add(closed);
    },
  });

  constructor(private readonly outbound: Outbound) {
    this.plain = this.make();
  }

  of(identity: NamedIdentity | undefined): WayOut {
    if (!identity) return this.plain;
    const known = this.byIdentity.get(identity.id);
    if (known) return known;
    const made = this.make(identity);
    this.byIdentity.set(identity.id, made);
    return made;
  }

  async close(): Promise<void> {
    const all = [this.plain, ...this.byIdentity.values()];
    await Promise.all([...this.closing, ...all.map(({ kept }) => kept.close())]);
  }

  private make(identity?: NamedIdentity): WayOut {
    const connector = this.outbound.connectorFor(identity);
    return { connector, kept: new KeptConnections(connector) };
  }
}
