import type { Subscription } from './subscription.js';

/** An operator has to know these of a subscription before deliveries are sent to it again. */
export const subscriptionStates = ['active', 'paused', 'disabled', 'deleted'] as const;
export type SubscriptionState = (typeof subscriptionStates)[number];

/** @param subscription undefined: there is none any more */
export const stateOf = (subscription: Pick<Subscription, 'disabledAt' | 'pausedAt'> | undefined): SubscriptionState =>
  !subscription ? 'deleted' : subscription.disabledAt ? 'disabled' : subscription.pausedAt ? 'paused' : 'active';
