import type { DeliveryKey } from '../ledger/delivery.js';

const uuidLength = 16;

/** Where a list of deliveries goes on, as text that callers send back as it is. */
export function toCursor({ notificationId, subscriptionId }: DeliveryKey): string {
  return Buffer.from((notificationId + subscriptionId).replaceAll('-', ''), 'hex').toString('base64url');
}

/** @returns undefined for anything that `toCursor` does not write */
export function fromCursor(cursor: string): DeliveryKey | undefined {
  const bytes = Buffer.from(cursor, 'base64url');
  // The decoder skips characters it cannot read; only a text that the encoder wrote encodes to itself again.
  if (bytes.length !== 2 * uuidLength || bytes.toString('base64url') !== cursor) return undefined;
  return {
    notificationId: toUuid(bytes.subarray(0, uuidLength)),
    subscriptionId: toUuid(bytes.subarray(uuidLength)),
  };
}

const toUuid = (bytes: Buffer): string =>
  bytes.toString('hex').replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
