import { asJudged } from '../publishing/characteristics-of.js';
import { objectKeyOf } from '../publishing/in-order.js';
import { demandsOf, meets } from '../subscriptions/match-filters.js';
import type { Subscription } from '../subscriptions/subscription.js';

/** A notification as the ledger has it, as far as filters look at it. */
export interface StoredNotification {
  channel: string;
  /** `kenmerken` of its body, as they were sent. */
  characteristics: Readonly<Record<string, string>>;
}

/** Whether a notification would be for the subscription, with the filters that it has now. */
export function matcherOf({ channels }: Pick<Subscription, 'channels'>): (notification: StoredNotification) => boolean {
  const entries = channels.map((entry) => ({ channel: entry.channel, demands: demandsOf(entry) }));
  return ({ channel, characteristics }) => {
    const judged = asJudged(characteristics);
    return entries.some((entry) => entry.channel === channel && meets(entry.demands, judged));
  };
}

/** The key by which a new delivery of that object is kept in order; null: its subscription keeps none. */
export const objectKeyFor = ({ ordering }: Subscription, mainObject: string): string | null =>
  ordering === 'per-object' ? objectKeyOf(mainObject) : null;
