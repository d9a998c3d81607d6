import type { Change } from '../audit/audit-log.js';
import type { SecretCipher } from '../secrets/secret-cipher.service.js';
import type { SubscriptionEntity } from './subscription.entity.js';
import { authPlace, credentialsPlace } from './subscription.js';

/**
 * Makes the entry of the audit log about a change of a subscription.
 * @param done `paused`, for example
 * @param before null: it is new
 */
export function noteOfSubscription(
  cipher: SecretCipher,
  done: string,
  before: SubscriptionEntity | null,
  after: SubscriptionEntity,
): Change {
  return {
    action: `subscription.${done}`,
    subject: `subscription/${after.id}`,
    before: before && audited(before),
    after: after.deletedAt ? null : audited(after),
    changedSecrets: after.deletedAt ? [] : changedSecrets(cipher, before, after),
  };
}

function changedSecrets(cipher: SecretCipher, before: SubscriptionEntity | null, after: SubscriptionEntity): string[] {
  const isSameAuth = cipher.isSame(before?.auth ?? '', after.auth, authPlace(after.id));
  const isSame = cipher.isSame(before?.credentials ?? '', after.credentials ?? '', credentialsPlace(after.id));
  return [...(isSameAuth ? [] : ['auth']), ...(isSame ? [] : ['credentials'])];
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
  alertEmail: subscription.alertEmail,
  disabledAt: subscription.disabledAt,
  pausedAt: subscription.pausedAt,
});
