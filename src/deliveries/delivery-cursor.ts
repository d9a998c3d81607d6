import { textOfUuids, uuidsIn } from '../infra/uuid-text.js';
import type { DeliveryKey } from '../ledger/delivery.js';

/** Where a list of deliveries goes on, as text that callers send back as it is. */
export const toCursor = ({ notificationId, subscriptionId }: DeliveryKey): string =>
  textOfUuids(notificationId, subscriptionId);

/** @returns undefined for anything that `toCursor` does not write */
export function fromCursor(cursor: string): DeliveryKey | undefined {
  const [notificationId, subscriptionId, ...others] = uuidsIn(cursor);
  if (notificationId === undefined || subscriptionId === undefined || others.length > 0) return undefined;
  return { notificationId, subscriptionId };
}
