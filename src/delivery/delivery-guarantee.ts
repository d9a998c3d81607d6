import type { DeliveryGuarantee, Subscription } from '../subscriptions/subscription.js';

/**
 * What a subscription says for itself counts, then what its owner is promised.
 * @param atLeastOnceCustomers client ids; `*` is everybody
 */
export function guaranteeOf(
  { deliveryGuarantee, ownerClientId }: Pick<Subscription, 'deliveryGuarantee' | 'ownerClientId'>,
  atLeastOnceCustomers: ReadonlySet<string>,
): DeliveryGuarantee {
  if (deliveryGuarantee) return deliveryGuarantee;
  const isListed = atLeastOnceCustomers.has('*') || atLeastOnceCustomers.has(ownerClientId);
  return isListed ? 'at-least-once' : 'at-most-once';
}

const sixHours = 21_600;

/** Milliseconds the outcome of an owner's deliveries is remembered. @param secondsPerCustomer `*` is everybody else */
export function keepMsOf(ownerClientId: string, secondsPerCustomer: Readonly<Record<string, number>>): number {
  return (ownOf(secondsPerCustomer, ownerClientId) ?? ownOf(secondsPerCustomer, '*') ?? sixHours) * 1000;
}

/** A client may be called `constructor`. */
const ownOf = (record: Readonly<Record<string, number>>, key: string): number | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;
