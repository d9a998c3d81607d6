import { canonicalName } from '../channels/filter-names.js';
import { demandsOf, isMetBy, meets } from './match-filters.js';
import type { SubscribedChannel } from './subscription.js';

/** Why a filter is met, or is not: only `different` keeps a notification away. */
export const filterResults = ['equal', 'any', 'absent', 'different'] as const;

export interface ComparedFilter {
  /** As the subscriber spelt it. */
  name: string;
  wanted: string;
  /** Null: the notification does not have the name. */
  actual: string | null;
  result: (typeof filterResults)[number];
}

/** One entry of a subscription, beside the notification that it was compared with. */
export interface ComparedEntry {
  /** Among all entries of the subscription; counts from 1. */
  number: number;
  isMet: boolean;
  filters: ComparedFilter[];
}

/**
 * The entries of a subscription that are about the channel, each as `meets` decides it, with what it was decided by.
 * Those that are met come first, then those that lack least, in their order.
 */
export function compareEntries(
  entries: readonly SubscribedChannel[],
  channel: string,
  characteristics: ReadonlyMap<string, string>,
): ComparedEntry[] {
  return entries
    .map((entry, index) => ({ entry, number: index + 1 }))
    .filter(({ entry }) => entry.channel === channel)
    .map(({ entry, number }) => ({
      number,
      isMet: meets(demandsOf(entry), characteristics),
      filters: compareFilters(entry, characteristics),
    }))
    .toSorted((one, other) => lacking(one) - lacking(other) || one.number - other.number);
}

function compareFilters(
  { filters }: SubscribedChannel,
  characteristics: ReadonlyMap<string, string>,
): ComparedFilter[] {
  // As in `demandsOf`: of several names with the same canonical form the last one counts.
  const byCanonicalName = new Map(Object.entries(filters).map((filter) => [canonicalName(filter[0]), filter]));
  return [...byCanonicalName].map(([canonical, [name, wanted]]) => {
    const actual = characteristics.get(canonical);
    return { name, wanted, actual: actual ?? null, result: resultOf(wanted, actual) };
  });
}

function resultOf(wanted: string, actual: string | undefined): ComparedFilter['result'] {
  if (wanted === '*') return 'any';
  if (!isMetBy(wanted, actual)) return 'different';
  return actual === undefined ? 'absent' : 'equal';
}

const lacking = ({ filters }: ComparedEntry): number => filters.filter(({ result }) => result === 'different').length;
