import { statement, type Statement, type Values } from '../infra/postgres/statement.js';
import type { DeliveryKey } from '../ledger/delivery.js';

/** The shown columns of deliveries, `d`, and of their notifications. A key whose day was dropped is missing. Newest notification first. */
export function byKeys(keys: readonly DeliveryKey[]): [Statement, Values] {
  return [
    deliveries,
    { ids: keys.map((key) => key.notificationId), subscription_ids: keys.map((key) => key.subscriptionId) },
  ];
}

// Each LIMIT keeps the planner from joining the other way round, which would read all of a table.
const deliveries = statement(
  'read-deliveries',
  `SELECT d.notification_id, d.subscription_id, d.state, d.generation, d.attempts, d.failures,
     d.replays, CASE WHEN d.state = 'waiting' THEN d.next_at END AS next_attempt_at,
     CASE WHEN d.state = 'held' THEN d.held_for END AS held_for, d.held_since, d.queued_at, d.expires_at,
     d.last_status, d.last_error, d.ended_at, d.replay_id, n.channel, n.accepted_at
   FROM unnest($ids::uuid[], $subscription_ids::uuid[]) AS k (notification_id, subscription_id)
   CROSS JOIN LATERAL (
     SELECT * FROM delivery WHERE notification_id = k.notification_id AND subscription_id = k.subscription_id LIMIT 1
   ) d
   CROSS JOIN LATERAL (SELECT channel, accepted_at FROM notification WHERE id = k.notification_id LIMIT 1) n
   ORDER BY d.notification_id DESC, d.subscription_id DESC`,
);

/** Of these deliveries, in their order. */
export function attemptsOf(keys: readonly DeliveryKey[], mostOfEach: number): [Statement, Values] {
  return [
    attempts,
    {
      ids: keys.map((key) => key.notificationId),
      subscription_ids: keys.map((key) => key.subscriptionId),
      most: mostOfEach,
    },
  ];
}

const attempts = statement(
  'read-attempts',
  `SELECT a.* FROM unnest($ids::uuid[], $subscription_ids::uuid[]) AS k (notification_id, subscription_id)
   CROSS JOIN LATERAL (
     SELECT notification_id, subscription_id, number, generation, started_at, duration_ms, connect_ms, first_byte_ms, status, error, details
     FROM attempt WHERE notification_id = k.notification_id AND subscription_id = k.subscription_id
     ORDER BY number DESC, started_at DESC LIMIT $most
   ) a
   ORDER BY a.notification_id, a.subscription_id, a.number, a.generation`,
);
