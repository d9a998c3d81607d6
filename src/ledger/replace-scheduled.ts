import type { Query } from '../infra/postgres/postgres.js';
import * as statements from './terms-statements.js';

export interface Replacement {
  application: string;
  key: string;
  requestHash: string;
  keepSeconds: number;
  channel: string;
  body: string;
  /** Milliseconds since 1970; null: now. */
  notBefore: number | null;
  expiresAt: number | null;
  subscriptionIds: string[];
}

export type Replaced =
  | { kind: 'replaced'; id: string }
  /** It was, or may have been, handed out: too late. */
  | { kind: 'sent' }
  /** The catalogue is at another version than it was matched with: match again. */
  | { kind: 'outdated'; version: number };

/** Puts other content in the place of a scheduled notification, as long as none of it was sent. Runs in a transaction. */
export async function replaceScheduled(query: Query, version: number, replacement: Replacement): Promise<Replaced> {
  const { application, key, requestHash, keepSeconds, channel, body, notBefore, expiresAt, subscriptionIds } =
    replacement;
  const [taken] = await query<{ result_id: string; is_duplicate: boolean }>(statements.lockKey, [
    application,
    'put',
    key,
  ]);
  // A duplicate stands for somebody else's notification, which is not this publisher's to change.
  if (!taken || taken.is_duplicate) return { kind: 'sent' };
  const [catalogue] = await query<{ version: string }>(statements.lockCatalogue, []);
  if (Number(catalogue!.version) !== version) return { kind: 'outdated', version: Number(catalogue!.version) };
  const id = taken.result_id;
  const replaceable = await query(statements.lockScheduled, [id]);
  if (replaceable.length === 0) return { kind: 'sent' };
  await query(statements.forgetDeliveries, [id]);
  const content = [channel, body, notBefore, expiresAt, subscriptionIds];
  await query(statements.replaceNotification, [id, ...content, requestHash, keepSeconds, application, key]);
  return { kind: 'replaced', id };
}
