import type { EntityManager } from 'typeorm';
import { AuditLog } from '../audit/audit-log.js';
import type { SubscriptionEntity } from './subscription.entity.js';

/**
 * Notes what was done to a subscription, in the transaction that does it.
 * @param done `paused`, for example
 * @param before null: it is new
 */
export async function noteSubscription(
  manager: EntityManager,
  done: string,
  before: SubscriptionEntity | null,
  after: SubscriptionEntity,
): Promise<void> {
  await AuditLog.note(manager, {
    action: `subscription.${done}`,
    subject: `subscription/${after.id}`,
    before: before && audited(before),
    after: after.deletedAt ? null : audited(after),
    changedSecrets: after.auth === (before?.auth ?? '') ? [] : ['auth'],
  });
}

/** Each field is named, so that a secret that is added to the entity does not get into the log. */
const audited = (subscription: SubscriptionEntity) => ({
  ownerClientId: subscription.ownerClientId,
  callbackUrl: subscription.callbackUrl,
  channels: subscription.channels,
  deliveryGuarantee: subscription.deliveryGuarantee,
  timeoutSeconds: subscription.timeoutSeconds,
  maxConcurrency: subscription.maxConcurrency,
  ratePerSecond: subscription.ratePerSecond,
  ordering: subscription.ordering,
  disabledAt: subscription.disabledAt,
  pausedAt: subscription.pausedAt,
});
