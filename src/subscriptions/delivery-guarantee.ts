import type { DeliveryGuarantee, Subscription } from './subscription.js';

/**
 * The subscription's own guarantee, or else that of its owner.
 * @param atLeastOnceCustomers client ids; `*` is every application
 */
export function guaranteeOf(
  { deliveryGuarantee, ownerClientId }: Pick<Subscription, 'deliveryGuarantee' | 'ownerClientId'>,
  atLeastOnceCustomers: ReadonlySet<string>,
): DeliveryGuarantee {
  if (deliveryGuarantee) return deliveryGuarantee;
  const isListed = atLeastOnceCustomers.has('*') || atLeastOnceCustomers.has(ownerClientId);
  return isListed ? 'at-least-once' : 'at-most-once';
}
