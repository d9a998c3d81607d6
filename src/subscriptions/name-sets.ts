import { demandsOf, type Demands } from './match-filters.js';
import type { SubscribedChannel } from './subscription.js';

/** A match looks once at each set of names that entries of the channel demand; this is what such a set is known by. */
export const keyOfNames = (demands: Demands): string => JSON.stringify(demands.map(([name]) => name));

/** Whether the other entries of a subscription on the channel cannot matter: they are in no index. */
export const isOfEverything = (alternatives: readonly Demands[]): boolean =>
  alternatives.some((demands) => demands.length === 0);

/** By the key of a set: how many entries demand it. */
type Counts = ReadonlyMap<string, number>;

const none: Counts = new Map();

/** The sets of names that entries demand, of each channel, as the index of the channel counts them. */
export class NameSets {
  private readonly byChannel = new Map<string, Map<string, number>>();

  of(channel: string): Counts {
    return this.byChannel.get(channel) ?? none;
  }

  all(): ReadonlyMap<string, Counts> {
    return this.byChannel;
  }

  /** @param by 1: a subscription with these entries is added; -1: it is taken away */
  change(entries: readonly SubscribedChannel[], by: 1 | -1): void {
    const alternatives = new Map<string, Demands[]>();
    for (const entry of entries) {
      const demands = demandsOf(entry);
      const others = alternatives.get(entry.channel);
      if (others) others.push(demands);
      else alternatives.set(entry.channel, [demands]);
    }
    for (const [channel, all] of alternatives)
      if (!isOfEverything(all)) for (const demands of all) this.count(channel, keyOfNames(demands), by);
  }

  private count(channel: string, key: string, by: number): void {
    const counts = this.byChannel.get(channel) ?? new Map<string, number>();
    this.byChannel.set(channel, counts);
    const after = (counts.get(key) ?? 0) + by;
    if (after !== 0) counts.set(key, after);
    else if (counts.delete(key) && counts.size === 0) this.byChannel.delete(channel);
  }
}

/** @returns how many sets there are when all of these are added up */
export function countTogether(counted: readonly Counts[]): number {
  const [first = none, ...others] = counted;
  let count = first.size;
  const isThere = (key: string, among: readonly Counts[]) =>
    among.reduce((total, counts) => total + (counts.get(key) ?? 0), 0) > 0;
  for (const key of new Set(others.flatMap((counts) => [...counts.keys()])))
    count += Number(isThere(key, counted)) - Number(isThere(key, [first]));
  return count;
}
