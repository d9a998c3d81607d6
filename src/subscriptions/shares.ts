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
}

const noShare: Share = { subscriptions: 0, bytes: 0 };

/** Shares by application, as parts are added to them and taken from them. */
export class Shares {
  private readonly byOwner = new Map<string, Share>();

  of(clientId: string): Share {
    return this.byOwner.get(clientId) ?? noShare;
  }

  all(): ReadonlyMap<string, Share> {
    return this.byOwner;
  }

  /** @param part undefined: of a subscription that there is not */
  add(part: Part | undefined): void {
    if (part) this.change(part.ownerClientId, 1, part.bytes);
  }

  /** @param part undefined: of a subscription that there is not */
  remove(part: Part | undefined): void {
    if (part) this.change(part.ownerClientId, -1, -part.bytes);
  }

  private change(clientId: string, subscriptions: number, bytes: number): void {
    const before = this.of(clientId);
    const after = { subscriptions: before.subscriptions + subscriptions, bytes: before.bytes + bytes };
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
    const since = new Shares();
    for (const [id, part] of this.changed) {
      since.remove(this.memory.partOf(id));
      since.add(part);
    }
    for (const [clientId, by] of this.growth.all()) {
      const to = sum(this.memory.shares.of(clientId), since.of(clientId), by);
      yield { clientId, by, to };
    }
  }
}

const sum = (...shares: Share[]): Share => ({
  subscriptions: shares.reduce((total, { subscriptions }) => total + subscriptions, 0),
  bytes: shares.reduce((total, { bytes }) => total + bytes, 0),
});
