import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { Delivery, HandedOut } from '../../src/ledger/delivery.js';

/**
 * A delivery as it is handed out first, but for `parts`. Without ids it is of a notification and a subscription of its
 * own.
 */
export const newDelivery = <Parts extends Partial<HandedOut>>(parts: Parts): Delivery & Parts => ({
  notificationId: parts.notificationId ?? uuidv7(), // in a virtual time that is ahead none is to be made: newNotification
  subscriptionId: randomUUID(),
  generation: 1,
  attempts: 0,
  failures: 0,
  replays: 0,
  isReleased: false,
  isProbe: false,
  expiresAt: null,
  ...parts,
});

/** Of one subscription, with its text; null: that is too large for a message. */
export function deliveryWithText(text: string | null = '{}', notificationId: string = uuidv7()): HandedOut {
  const body = text === null ? null : Buffer.from(text);
  return newDelivery({ notificationId, subscriptionId: '5c5d28f3-6d24-4fd9-b2f8-2b7e3e5f5a01', body });
}
