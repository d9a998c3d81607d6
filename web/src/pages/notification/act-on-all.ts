import type { DeliveryState } from '../../parts/delivery-state.tsx';
import type { UrlState } from '../../parts/url-state.ts';
import { unfinishedStates } from '../../selection/selection.ts';

/** Is sent again where no state is named. */
const usuallySent: readonly DeliveryState[] = ['failed', 'expired'];
const sentWhereNamed: readonly DeliveryState[] = ['unknown', 'cancelled'];

interface Shown {
  state: DeliveryState;
}

/**
 * The search of the page that sends a notification again to all who missed it; undefined: nobody did.
 * @param isPart there are more deliveries than these
 */
export function missedOf(id: string, deliveries: readonly Shown[], isPart: boolean): UrlState | undefined {
  const present = (states: readonly DeliveryState[]) => states.filter((each) => deliveries.some(isIn(each)));
  const search = { notification: id, count: 'yes' };
  if (isPart || present(usuallySent).length > 0) return search;
  const named = present(sentWhereNamed);
  return named.length > 0 ? { ...search, state: named } : undefined;
}

/** The search of the page that cancels what is unfinished of a notification; undefined: nothing is. */
export function unfinishedOf(id: string, deliveries: readonly Shown[], isPart: boolean): UrlState | undefined {
  const isAny = isPart || unfinishedStates.some((each) => deliveries.some(isIn(each)));
  return isAny ? { what: 'unfinished', notification: id, count: 'yes' } : undefined;
}

const isIn =
  (state: DeliveryState) =>
  (delivery: Shown): boolean =>
    delivery.state === state;
