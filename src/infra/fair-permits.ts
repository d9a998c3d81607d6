interface Owner {
  held: number;
  line: Set<() => void>;
}

/**
 * Permits for work on behalf of several owners: so many at once, and so many for one of them. Owners that wait take
 * turns.
 */
export class FairPermits {
  private readonly owners = new Map<string, Owner>();
  private free: number;

  constructor(private readonly most: { atOnce: number; ofOne: number }) {
    this.free = most.atOnce;
  }

  /** @returns whether there is a permit now, to be released; not where `gone` came first */
  acquire(name: string, gone: AbortSignal): Promise<boolean> {
    if (gone.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const owner = this.owners.get(name) ?? { held: 0, line: new Set() };
      const go = () => {
        gone.removeEventListener('abort', leave);
        resolve(true);
      };
      const leave = () => {
        owner.line.delete(go);
        this.forget(name, owner);
        resolve(false);
      };
      gone.addEventListener('abort', leave, { once: true });
      this.owners.set(name, owner);
      owner.line.add(go);
      this.deal();
    });
  }

  held(name: string): number {
    return this.owners.get(name)?.held ?? 0;
  }

  /** @param name of the party that acquired it */
  release(name: string): void {
    const owner = this.owners.get(name)!;
    owner.held--;
    this.free++;
    this.forget(name, owner);
    this.deal();
  }

  private deal(): void {
    for (const [name, owner] of this.owners) {
      if (this.free === 0) return;
      const [go] = owner.line;
      if (!go || owner.held >= this.most.ofOne) continue;
      owner.line.delete(go);
      owner.held++;
      this.free--;
      // To the end, where this loop comes by once more: all others are asked before.
      this.owners.delete(name);
      this.owners.set(name, owner);
      go();
    }
  }

  private forget(name: string, { held, line }: Owner): void {
    if (held === 0 && line.size === 0) this.owners.delete(name);
  }
}
