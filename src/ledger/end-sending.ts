import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { deadProcesses } from '../liveness/heartbeat.service.js';
import { keyOf, sameDelivery, type DeliveryKey, type KeyRow } from './delivery.js';
import { unknownCounted } from './ledger.counters.js';

/** For the operator who finds one unknown. */
export const sendingEnded = 'the worker ended, or could not report, after it had the right to send';

export const endItems = statement(
  'end-sending',
  `WITH ended AS MATERIALIZED (
     SELECT notification_id, subscription_id FROM delivery
     WHERE state = 'sending' AND next_at >= to_timestamp($since_ms::float8 / 1000)
       AND (next_at <= now() OR process = ANY (${deadProcesses}))
     LIMIT $limit FOR UPDATE SKIP LOCKED
   )
   UPDATE delivery d SET
     state = 'unknown', held_for = NULL, next_at = NULL, process = NULL, ended_at = now(), last_error = '${sendingEnded}'
   FROM ended
   WHERE ${sameDelivery('ended')}
   RETURNING d.notification_id, d.subscription_id`,
);

/**
 * Ends at-most-once deliveries that were claimed, and whose process died or did not report in time: it will never be
 * known whether they arrived, so they are not sent again.
 * @param sinceMs milliseconds since 1970, by Postgres' clock: of claims that end after that
 * @returns which
 */
export async function endSending(postgres: Postgres, sinceMs: number, limit: number): Promise<DeliveryKey[]> {
  const rows = await postgres.query<KeyRow>(endItems, { since_ms: sinceMs, limit });
  unknownCounted.inc(rows.length);
  return rows.map(keyOf);
}
