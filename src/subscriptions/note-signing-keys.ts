import type { EntityManager } from 'typeorm';
import { AuditLog } from '../audit/audit-log.js';
import type { ShownSigningKey } from './signing-key-rows.js';

/**
 * Notes what was done to the signing keys of a subscription, in the transaction that does it.
 * @param done `signing-key-rotated`, for example
 */
export async function noteSigningKeys(
  manager: EntityManager,
  done: string,
  subscriptionId: string,
  before: readonly ShownSigningKey[],
  after: readonly ShownSigningKey[],
): Promise<void> {
  await AuditLog.note(manager, {
    action: `subscription.${done}`,
    subject: `subscription/${subscriptionId}`,
    before: byId(before),
    after: byId(after),
  });
}

const byId = (keys: readonly ShownSigningKey[]) =>
  Object.fromEntries(
    keys.map(({ id, scheme, publicKey, endsAt }) => [`signing-key/${id}`, { scheme, publicKey, endsAt }]),
  );
