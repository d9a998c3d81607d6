import type { Origin } from './room.js';

/**
 * Origins that have room for a call for which those of their kind have no place: unproven endpoints, or origins with
 * long calls. They wait by the share that they lack (`Places.shareOf`, `Places.shareOfLong`), the first first: so a
 * place that becomes free costs a step or two, however many origins wait.
 */
export class OriginsWithoutShare {
  private readonly byShare = new Map<number, Set<Origin>>();
  private readonly shares = new Map<Origin, number>();

  add(origin: Origin, share: number): void {
    this.delete(origin);
    this.shares.set(origin, share);
    const origins = this.byShare.get(share);
    if (origins) origins.add(origin);
    else this.byShare.set(share, new Set([origin]));
  }

  delete(origin: Origin): void {
    const share = this.shares.get(origin);
    if (share === undefined) return;
    this.shares.delete(origin);
    this.byShare.get(share)!.delete(origin);
  }

  /** Takes one out that has its share, while those of its kind have that many places; undefined: none has. */
  take(taken: number): Origin | undefined {
    for (const [share, origins] of this.byShare) {
      if (taken >= share) continue;
      const first = origins.values().next().value;
      if (!first) continue;
      this.delete(first);
      return first;
    }
    return undefined;
  }
}
