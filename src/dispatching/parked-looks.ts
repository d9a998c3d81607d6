import type { OpenEndpoint } from '../ledger/open-endpoints.js';
import type { NextLook } from '../ledger/planned-looks.js';

/** The looks at subscriptions of one endpoint. */
interface PlannedLooks {
  openedAt: number;
  /** When its next probe was due, as it seemed; the latest of what its looks were planned by. */
  probeAt: number;
  subscriptionIds: Set<string>;
}

/**
 * The looks that this process has planned for the next probe of an endpoint, so that they come sooner where that is
 * sooner than it seemed, or where the endpoint is closed. Each process remembers its own; those of one that has ended
 * come when they were planned for.
 */
export class ParkedLooks {
  private readonly byAddress = new Map<string, PlannedLooks>();
  private seen: ReadonlyMap<string, OpenEndpoint> | undefined;

  add({ address, openedAt, nextProbeAt }: OpenEndpoint, subscriptionId: string): void {
    const probeAt = nextProbeAt.getTime();
    const planned = this.byAddress.get(address);
    if (!planned) {
      const subscriptionIds = new Set([subscriptionId]);
      this.byAddress.set(address, { openedAt: openedAt.getTime(), probeAt, subscriptionIds });
      return;
    }
    planned.probeAt = Math.max(planned.probeAt, probeAt);
    planned.subscriptionIds.add(subscriptionId);
  }

  /**
   * @param open endpoints; another map after each read
   * @param nowMs milliseconds since 1970, by Postgres' clock
   */
  sooner(open: ReadonlyMap<string, OpenEndpoint>, nowMs: number): NextLook[] {
    if (open === this.seen) return [];
    this.seen = open;
    const inMs = new Map<string, number>();
    for (const [address, planned] of this.byAddress) {
      const endpoint = open.get(address);
      const isSame = endpoint?.openedAt.getTime() === planned.openedAt;
      const probeAt = isSame ? endpoint!.nextProbeAt.getTime() : nowMs;
      if (!isSame) this.byAddress.delete(address);
      else if (probeAt >= planned.probeAt) continue;
      planned.probeAt = probeAt;
      for (const id of planned.subscriptionIds)
        inMs.set(id, Math.min(inMs.get(id) ?? Infinity, Math.max(0, probeAt - nowMs)));
    }
    return [...inMs].map(([subscriptionId, nextLookInMs]) => ({ subscriptionId, nextLookInMs }));
  }
}
