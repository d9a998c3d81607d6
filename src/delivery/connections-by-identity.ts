import { LRUCache } from 'lru-cache';
import type { NamedIdentity } from '../credentials/credentials.js';
import type { Connector } from '../outbound/connector.js';
import type { Outbound } from '../outbound/outbound.service.js';
import { KeptConnections } from './kept-connections.undici.js';

/** To receivers, made with one TLS identity: those that are kept open, and what makes others. */
interface Connections {
  connector: Connector;
  kept: KeptConnections;
}

/** More subscriptions with certificates of their own than these still work, but keep fewer connections open. */
const mostIdentities = 1000;

/**
 * For each TLS identity connections of its own: over one that was made with it, no call is sent that has another, or
 * none. Calls without one, nearly all, share theirs.
 */
export class ConnectionsByIdentity {
  private readonly plain: Connections;
  private readonly closing = new Set<Promise<void>>();
  private readonly byIdentity = new LRUCache<string, Connections>({
    max: mostIdentities,
    dispose: ({ kept }, _, why) => {
      if (why !== 'evict') return;
      const closed = kept.finish().finally(() => this.closing.delete(closed));
      this.closing.add(closed);
    },
  });

  /** @param useMs how long a connection is used at most */
  constructor(
    private readonly outbound: Outbound,
    private readonly useMs?: number,
  ) {
    this.plain = this.make();
  }

  of(identity: NamedIdentity | undefined): Connections {
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

  private make(identity?: NamedIdentity): Connections {
    const connector = this.outbound.connectorFor(identity);
    return { connector, kept: new KeptConnections(connector, this.useMs) };
  }
}
