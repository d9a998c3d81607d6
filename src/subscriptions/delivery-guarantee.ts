import type { DeliveryGuarantee, Subscription } from './subscription.js';

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
