import type { Settings } from '../config/settings.js';
import type { Idempotency, IdempotentOperation } from '../idempotency/idempotency.service.js';
import type { DeliveryKey } from '../ledger/delivery.js';
import type { SealedOutcome } from './sealed-outcome.js';

/**
 * The locks and seals of at-least-once deliveries. A process that has the lock may send; one that finds the seal does
 * not.
 */
export const deliveryKeys = (
  idempotency: Idempotency,
  { TTL_LOCK_TIME_LIMIT_MS: lockTtlMs }: Settings,
): IdempotentOperation<SealedOutcome> => idempotency.operation({ name: 'delivery', lockTtlMs, mayTakeOver: true });

/** A replay is sent although the delivery has ended: the seal of its first series of attempts must not filter it. */
export const keyIdOf = ({ notificationId, subscriptionId, replays }: DeliveryKey & { replays: number }): string =>
  `${notificationId}:${subscriptionId}${replays === 0 ? '' : `:${replays}`}`;
