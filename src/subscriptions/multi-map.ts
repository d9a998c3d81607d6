/**
 * Several items under one key. Most keys have one item, and a `Set` costs more memory than that: it is made for the
 * second.
 */
export class MultiMap<Key, Item extends object> {
  private readonly entries = new Map<Key, Item | Set<Item>>();
  private count = 0;

  /** Of items. */
  get size(): number {
    return this.count;
  }

  /** @param item that is not under this key yet */
  add(key: Key, item: Item): void {
    this.count++;
    const entry = this.entries.get(key);
    if (entry === undefined) this.entries.set(key, item);
    else if (entry instanceof Set) entry.add(item);
    else this.entries.set(key, new Set([entry, item]));
  }

  /** @param item that is under this key */
  remove(key: Key, item: Item): void {
    this.count--;
    const entry = this.entries.get(key);
    if (entry instanceof Set && entry.size > 1) entry.delete(item);
    else this.entries.delete(key);
  }

  countOf(key: Key): number {
    const entry = this.entries.get(key);
    if (entry === undefined) return 0;
    return entry instanceof Set ? entry.size : 1;
  }

  visit(key: Key, visitor: (item: Item) => void): void {
    const entry = this.entries.get(key);
    if (entry instanceof Set) entry.forEach(visitor);
    else if (entry !== undefined) visitor(entry);
  }

  visitAll(visitor: (item: Item) => void): void {
    for (const entry of this.entries.values()) {
      if (entry instanceof Set) entry.forEach(visitor);
      else visitor(entry);
    }
  }
}
