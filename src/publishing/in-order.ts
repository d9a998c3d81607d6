import { createHash } from 'node:crypto';
import { asUuid } from '../infra/uuid-text.js';
import type { InOrder } from '../ledger/line-up.js';
import type { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';

/**
 * Which of these subscriptions keep the order of notifications about that object. @returns null where none does: nearly
 * always
 */
export function inOrderOf(
  subscriptions: SubscriptionDirectory,
  subscriptionIds: readonly string[],
  hoofdObject: string,
): InOrder | null {
  const ordered = subscriptions.keepingOrder(subscriptionIds);
  return ordered.size === 0 ? null : { objectKey: objectKeyOf(hoofdObject), subscriptionIds: ordered };
}

/** A UUID that stands for an object in the ledger: the same for the same `hoofdObject`, character by character. */
export function objectKeyOf(hoofdObject: string): string {
  return asUuid(createHash('sha256').update(hoofdObject).digest('hex').slice(0, 32));
}
