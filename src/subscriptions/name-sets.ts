import { demandsOf, type Demands } from './match-filters.js';
import type { SubscribedChannel } from './subscription.js';

/** A match looks once at each set of names that entries of the channel demand; this is what such a set is known by. */
export const keyOfNames = (demands: Demands): string => JSON.stringify(demands.map(([name]) => name));

/** Whether the other entries of a subscription on the channel cannot matter: they are in no index. */
export const isOfEverything = (alternatives: readonly Demands[]): boolean =>
  alternatives.some((demands) => demands.length === 0);

/** Of a subscription's entries, by channel. @param demands of each entry */
export function alternativesOf(
  entries: readonly SubscribedChannel[],
  demands: readonly Demands[],
): ReadonlyMap<string, readonly Demands[]> {
  const alternatives = new Map<string, Demands[]>();
  for (const [nr, { channel }] of entries.entries()) {
    const others = alternatives.get(channel);
    if (others) others.push(demands[nr]!);
    else alternatives.set(channel, [demands[nr]!]);
  }
  return alternatives;
}

/** By the key of a set: how many entries demand it. Of subscriptions that get everything each counts once. */
type Counts = ReadonlyMap<string, number>;

/** Not one of the sets that a match looks at. */
const everything = keyOfNames([]);

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

  /**
   * @param by 1: a subscription with these entries is added; -1: it is taken away
   * @param demands of each entry
   */
  change(
    entries: readonly SubscribedChannel[],
    by: 1 | -1,
    demands: readonly Demands[] = entries.map(demandsOf),
  ): void {
    for (const [channel, all] of alternativesOf(entries, demands))
      if (isOfEverything(all)) this.count(channel, everything, by);
      else for (const demands of all) this.count(channel, keyOfNames(demands), by);
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
  let count = first.size - Number(first.has(everything));
  const isThere = (key: string, among: readonly Counts[]) =>
    among.reduce((total, counts) => total + (counts.get(key) ?? 0), 0) > 0;
  for (const key of new Set(others.flatMap((counts) => [...counts.keys()])))
    if (key !== everything) count += Number(isThere(key, counted)) - Number(isThere(key, [first]));
  return count;
}

/**
 * @param names canonical, that the channel knows; undefined: not known
 * @returns how many entries, of all of these together, demand none of the names: whatever a notification has, it can
 *   hardly be kept away from them
 */
export function countUnfiltered(counted: readonly Counts[], names: ReadonlySet<string> | undefined): number {
  const isUnfiltered = (key: string) =>
    key === everything || (names !== undefined && !(JSON.parse(key) as string[]).some((name) => names.has(name)));
  let count = 0;
  for (const counts of counted) for (const [key, entries] of counts) if (isUnfiltered(key)) count += entries;
  return count;
}
