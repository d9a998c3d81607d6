import { canonicalName } from '../channels/filter-names.js';
import type { SubscribedChannel } from './subscription.js';

/**
 * The filters of one entry of a subscription, prepared for comparing: canonical name, each once and in their order, and
 * value.
 */
export type Demands = readonly (readonly [name: string, value: string])[];

/**
 * `*` demands nothing: it matches every value, and a filter on a name that a notification does not have is met anyway.
 * If several names have the same canonical form, the last one counts, as it does where an abonnement is read.
 */
export function demandsOf({ filters }: Pick<SubscribedChannel, 'filters'>): Demands {
  const values = new Map(Object.entries(filters).map(([name, value]) => [canonicalName(name), value]));
  return [...values].filter(([, value]) => value !== '*').toSorted(([one], [other]) => (one < other ? -1 : 1));
}

/**
 * Whether a notification with these characteristics (by canonical name) meets every demand of an entry; one on a name
 * that the notification does not have is met. The entries of a subscription are alternatives: one that is met is
 * enough.
 */
export function meets(demands: Demands, characteristics: ReadonlyMap<string, string>): boolean {
  return demands.every(([name, value]) => isMetBy(value, characteristics.get(name)));
}

/** @param actual undefined: the notification does not have the name */
export const isMetBy = (value: string, actual: string | undefined): boolean => actual === undefined || actual === value;
