import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { highestId } from '../ledger/partitions.js';
import { signingKeysOfSql, type SigningKeyRow } from './signing-key-rows.js';
import type { DeliveryGuarantee, Ordering, SubscribedChannel } from './subscription.js';

export interface SubscriptionRow {
  id: string;
  owner_client_id: string;
  callback_url: string;
  auth: string;
  credentials: string | null;
  channels: SubscribedChannel[];
  delivery_guarantee: DeliveryGuarantee | null;
  disabled_at: Date | null;
  paused_at: Date | null;
  timeout_seconds: number | null;
  max_concurrency: number | null;
  rate_per_second: number | null;
  ordering: Ordering;
  alert_email: string | null;
  /** Null: it has none. */
  signing_keys: SigningKeyRow[] | null;
  is_deleted: boolean;
  /** Seconds since 1970, to the microsecond. */
  created_at: number;
  version: string;
}

/** Deleted ones are for memory that may hold them; nothing is in memory yet when no version is known. */
export const changedSubscriptionsPage = statement(
  'subscriptions-changed-since',
  `SELECT id, owner_client_id, callback_url, auth, credentials, channels, delivery_guarantee, disabled_at,
   paused_at, timeout_seconds, max_concurrency, rate_per_second, ordering, alert_email,
   ${signingKeysOfSql('subscription.id')} AS signing_keys,
   deleted_at IS NOT NULL AS is_deleted, extract(epoch FROM created_at)::float8 AS created_at, version
   FROM subscription WHERE (version, id) > ($after_version, $after_id) AND (deleted_at IS NULL OR $known::bigint > 0)
   ORDER BY version, id LIMIT $limit`,
);

/** A row has some 400 bytes, and seldom as much as the body of a request may (BODY_LIMIT_BYTES). */
const pageLength = 500;

/**
 * The rows changed after the catalogue version `known`, in pages. A row that changes while they are read gets a higher
 * version than any before, so it comes, or comes again, on a later page: none is missed.
 */
export async function* changedSubscriptions(postgres: Postgres, known: number): AsyncGenerator<SubscriptionRow[]> {
  let after = { after_version: String(known), after_id: highestId };
  for (;;) {
    const values = { ...after, known, limit: pageLength };
    const rows = await postgres.query<SubscriptionRow>(changedSubscriptionsPage, values);
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (!last || rows.length < pageLength) return;
    after = { after_version: last.version, after_id: last.id };
  }
}
