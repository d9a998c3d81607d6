import { LRUCache } from 'lru-cache';

/** Since when something fails, for each of many names. */
export class FailingSince {
  /** By `performance.now`. */
  private readonly since = new LRUCache<string, number>({
    max: 10_000,
    // Counted from the last failure: after so long without one, the next is the first of another trouble.
    ttl: 600_000,
  });

  note(name: string): void {
    this.since.set(name, this.since.get(name) ?? performance.now());
  }

  /** It works. */
  end(name: string): void {
    this.since.delete(name);
  }

  /** In milliseconds; 0: it does not fail. */
  forMs(name: string): number {
    const now = performance.now();
    return now - (this.since.get(name) ?? now);
  }
}
