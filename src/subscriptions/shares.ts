import { countTogether, countUnfiltered, NameSets } from './name-sets.js';
import type { Demands } from './match-filters.js';
import type { SubscribedChannel } from './subscription.js';

/** Memory of each process that the subscriptions of one application take, or a change of it. */
export interface Share {
  readonly subscriptions: number;
  /** Roughly (`bytesInMemory`). */
  readonly bytes: number;
}

/** The part of one subscription in the share of its owner. */
export interface Part {
  readonly ownerClientId: string;
  readonly bytes: number;
  readonly channels: readonly SubscribedChannel[];
  /** Of each of the channels, as `demandsOf` has them; undefined: not worked out yet. */
  readonly demands?: readonly Demands[];
}

/** Of what an application's filters have on a channel: how many more, and how many then. */
interface Growth {
  clientId: string;
  channel: string;
  by: number;
  to: number;
}

/** The canonical names that a channel knows; undefined: there is no such channel. */
export type NamesOf = (channel: string) => ReadonlySet<string> | undefined;

const noShare: Share = { subscriptions: 0, bytes: 0 };
const noNameSets = new NameSets();

/** Shares by application, as parts are added to them and taken from them. */
export class Shares {
  private readonly byOwner = new Map<string, Share>();
  private readonly nameSetsByOwner = new Map<string, NameSets>();

  of(clientId: string): Share {
    return this.byOwner.get(clientId) ?? noShare;
  }

  nameSetsOf(clientId: string): NameSets {
    return this.nameSetsByOwner.get(clientId) ?? noNameSets;
  }

  all(): ReadonlyMap<string, Share> {
    return this.byOwner;
  }

  allNameSets(): ReadonlyMap<string, NameSets> {
    return this.nameSetsByOwner;
  }

  /** @param part undefined: of a subscription that there is not */
  add(part: Part | undefined): void {
    if (part) this.change(part, 1);
  }

  /** @param part undefined: of a subscription that there is not */
  remove(part: Part | undefined): void {
    if (part) this.change(part, -1);
  }

  /** @param part undefined: there was none */
  replace(part: Part | undefined, by: Part): void {
    // The same list of demands: to count tens of thousands of names takes a while.
    const isCounted = part?.demands !== undefined && part.demands === by.demands;
    if (!isCounted || part.ownerClientId !== by.ownerClientId) {
      this.remove(part);
      this.add(by);
      return;
    }
    this.changeSize(part, -1);
    this.changeSize(by, 1);
  }

  private change(part: Part, by: 1 | -1): void {
    this.changeSize(part, by);
    const { ownerClientId: clientId, channels, demands } = part;
    const nameSets = this.nameSetsByOwner.get(clientId) ?? new NameSets();
    nameSets.change(channels, by, demands);
    if (nameSets.all().size === 0) this.nameSetsByOwner.delete(clientId);
    else this.nameSetsByOwner.set(clientId, nameSets);
  }

  private changeSize({ ownerClientId: clientId, bytes }: Part, by: 1 | -1): void {
    const before = this.of(clientId);
    const after = { subscriptions: before.subscriptions + by, bytes: before.bytes + by * bytes };
    if (after.subscriptions === 0 && after.bytes === 0) this.byOwner.delete(clientId);
    else this.byOwner.set(clientId, after);
  }
}

/** The shares within a change of the catalogue, and what that changes of them. */
export class ChangingShares {
  private readonly growth = new Shares();

  /**
   * @param memory of this process; it may lag
   * @param changed since memory was read, by id; undefined: it is deleted. Memory may have some of it meanwhile
   */
  constructor(
    private readonly memory: { readonly shares: Shares; partOf(id: string): Part | undefined },
    private readonly changed: ReadonlyMap<string, Part | undefined>,
  ) {}

  /** The change gives a subscription this part. @param part undefined: it is deleted */
  replace(id: string, part: Part | undefined): void {
    this.growth.remove(this.changed.has(id) ? this.changed.get(id) : this.memory.partOf(id));
    this.growth.add(part);
  }

  /** Of each application that the change is about: by how much it grows, and to what. */
  *grown(): Iterable<{ clientId: string; by: Share; to: Share }> {
    if (this.growth.all().size === 0) return;
    const since = this.since();
    for (const [clientId, by] of this.growth.all()) {
      const to = sum(this.memory.shares.of(clientId), since.of(clientId), by);
      yield { clientId, by, to };
    }
  }

  /** Of each application and channel whose sets of names the change is about, as `grown`. */
  *grownNameSets(): Iterable<Growth> {
    if (this.growth.allNameSets().size === 0) return;
    const since = this.since();
    for (const [clientId, growth] of this.growth.allNameSets())
      for (const [channel, changed] of growth.all()) {
        const before = [this.memory.shares, since].map((shares) => shares.nameSetsOf(clientId).of(channel));
        const to = countTogether([...before, changed]);
        yield { clientId, channel, by: to - countTogether(before), to };
      }
  }

  /** Of each application and channel of which it gets more unfiltered entries, as `grown`. */
  *grownUnfiltered(namesOf: NamesOf): Iterable<Growth> {
    const since = this.since();
    for (const [clientId, growth] of this.growth.allNameSets())
      for (const [channel, changed] of growth.all()) {
        const names = namesOf(channel);
        const by = countUnfiltered([changed], names);
        if (by <= 0) continue;
        const before = [this.memory.shares, since].map((shares) => shares.nameSetsOf(clientId).of(channel));
        yield { clientId, channel, by, to: countUnfiltered([...before, changed], names) };
      }
  }

  /** Beyond what memory has. */
  private since(): Shares {
    const since = new Shares();
    for (const [id, part] of this.changed) {
      since.remove(this.memory.partOf(id));
      since.add(part);
    }
    return since;
  }
}

const sum = (...shares: Share[]): Share => ({
  subscriptions: shares.reduce((total, { subscriptions }) => total + subscriptions, 0),
  bytes: shares.reduce((total, { bytes }) => total + bytes, 0),
});
