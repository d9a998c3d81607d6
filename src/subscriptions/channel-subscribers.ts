import type { Demands } from './match-filters.js';
import { EntriesByValue } from './entries-by-value.js';
import { isOfEverything, keyOfNames } from './name-sets.js';

interface Subscriber {
  readonly id: string;
  /** Those by which it is found: none where it is one of `ofEverything`. */
  entries: readonly Entry[];
  /** The last match that found it: one with several entries is found once. */
  foundBy: number;
}

interface Entry {
  readonly subscriber: Subscriber;
  readonly demands: Demands;
}

/**
 * The subscriptions of one channel, found by what a notification has (docs/decisions/0021). A match costs what it
 * finds, and one look-up for each set of names that entries demand; neither a match nor a change depends on how many
 * subscriptions there are.
 */
export class ChannelSubscribers {
  private readonly subscribers = new Map<string, Subscriber>();
  /** Those with an entry that demands nothing. Their other entries cannot matter, and are in no index. */
  private readonly ofEverything = new Set<Subscriber>();
  private readonly byNames = new Map<string, EntriesByValue<Entry>>();
  private matches = 0;

  get isEmpty(): boolean {
    return this.subscribers.size === 0;
  }

  /** @param id of a subscription that is not in the index */
  add(id: string, alternatives: readonly Demands[]): void {
    const subscriber: Subscriber = { id, entries: [], foundBy: 0 };
    this.subscribers.set(id, subscriber);
    if (isOfEverything(alternatives)) {
      this.ofEverything.add(subscriber);
      return;
    }
    // Not pushed one by one: that reserves memory for sixteen more, for each of a hundred thousand subscriptions.
    subscriber.entries = alternatives.map((demands) => ({ subscriber, demands }));
    for (const entry of subscriber.entries) this.indexFor(entry.demands).add(entry);
  }

  remove(id: string): void {
    const subscriber = this.subscribers.get(id);
    if (!subscriber) return;
    this.subscribers.delete(id);
    this.ofEverything.delete(subscriber);
    for (const entry of subscriber.entries) {
      const key = keyOfNames(entry.demands);
      const index = this.byNames.get(key)!;
      index.remove(entry);
      if (index.isEmpty) this.byNames.delete(key);
    }
  }

  /**
   * The ids of the subscriptions that have an entry which is met, each once. `characteristics` are by canonical name.
   */
  match(characteristics: ReadonlyMap<string, string>): string[] {
    const match = ++this.matches;
    const found: string[] = [];
    for (const { id } of this.ofEverything) found.push(id);
    const collect = ({ subscriber }: Entry) => {
      if (subscriber.foundBy === match) return;
      subscriber.foundBy = match;
      found.push(subscriber.id);
    };
    for (const index of this.byNames.values()) index.visitMet(characteristics, collect);
    return found;
  }

  private indexFor(demands: Demands): EntriesByValue<Entry> {
    const key = keyOfNames(demands);
    let index = this.byNames.get(key);
    if (!index) {
      index = new EntriesByValue(demands.map(([name]) => name));
      this.byNames.set(key, index);
    }
    return index;
  }
}
