import { v7 as uuidv7 } from 'uuid';
import type { DeliveryState } from '../../src/ledger/delivery.js';

type Sql = (text: string, values: unknown[]) => Promise<unknown>;

/** Writes notifications into the ledger that no publisher sent. */
export async function insertNotifications(sql: Sql, ids: readonly string[], { channel = 'cases', body = '{}' } = {}) {
  await sql(
    `INSERT INTO notification (id, channel, publisher, body)
     SELECT id, $2, 'tester', $3 FROM unnest($1::uuid[]) AS n (id) ON CONFLICT DO NOTHING`,
    [ids, channel, body],
  );
}

interface Inserted {
  /** Their ids, or how many new ones. */
  notifications: readonly string[] | number;
  /** Each gets a delivery of each notification. */
  subscriptionIds: readonly string[];
  state: DeliveryState;
  /** Further columns, each as an SQL expression. */
  columns?: Record<string, string>;
}

/**
 * Writes deliveries into the ledger as if what leads to that state had happened. @returns the ids of their
 * notifications
 */
export async function insertDeliveries(sql: Sql, { notifications, subscriptionIds, state, columns = {} }: Inserted) {
  const ids =
    typeof notifications === 'number' ? Array.from({ length: notifications }, () => uuidv7()) : [...notifications];
  await sql(
    `INSERT INTO delivery (${['notification_id', 'subscription_id', 'state', ...Object.keys(columns)].join()})
     SELECT ${['notification_id', 'subscription_id', '$3', ...Object.values(columns)].join()}
     FROM unnest($1::uuid[]) AS n (notification_id), unnest($2::uuid[]) AS s (subscription_id)`,
    [ids, subscriptionIds, state],
  );
  return ids;
}
