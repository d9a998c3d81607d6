import { canonicalName } from '../channels/filter-names.js';
import type { SubscribedChannel } from './subscription.js';

/** The filters of one entry of a subscription, prepared for comparing: canonical name and value. */
export type Demands = readonly (readonly [name: string, value: string])[];

/** `*` demands nothing: it matches every value, and a filter on a name that a notification does not have is met anyway. */
export const demandsOf = ({ filters }: Pick<SubscribedChannel, 'filters'>): Demands =>
  Object.entries(filters)
    .filter(([, value]) => value !== '*')
    .map(([name, value]) => [canonicalName(name), value] as const);

/**
 * Whether a notification with these characteristics (by canonical name) meets one of the alternatives. Every demand of an
 * alternative must be met; one on a name the notification does not have is met.
 */
export function meetsOneOf(alternatives: readonly Demands[], characteristics: ReadonlyMap<string, string>): boolean {
  return alternatives.some((demands) =>
    demands.every(([name, value]) => {
      const actual = characteristics.get(name);
      return actual === undefined || actual === value;
    }),
  );
}
