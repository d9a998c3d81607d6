import type { Query } from '../infra/postgres/postgres.js';
import * as statements from './statements.js';

export interface Replacement {
  application: string;
  key: string;
  requestHash: string;
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
  const { application, key, requestHash, channel, body, notBefore, expiresAt, subscriptionIds } = replacement;
  const [taken] = await query<{ result_id: string }>(statements.lockKey, [application, 'put', key]);
  if (!taken) return { kind: 'sent' };
  const [catalogue] = await query<{ version: string }>(statements.lockCatalogue, []);
  if (Number(catalogue!.version) !== version) return { kind: 'outdated', version: Number(catalogue!.version) };
  const id = taken.result_id;
  const replaceable = await query(statements.lockScheduled, [id]);
  if (replaceable.length === 0) return { kind: 'sent' };
  await query(statements.forgetDeliveries, [id]);
  await query(statements.replaceNotification, [id, channel, body, notBefore, requestHash, expiresAt, subscriptionIds]);
  return { kind: 'replaced', id };
}
