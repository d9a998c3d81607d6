import { statement, type Statement, type Values } from '../infra/postgres/statement.js';
import type { DeliveryKey } from '../ledger/delivery.js';
import type { LedgerTable } from '../ledger/partitions.js';
import { perDay } from '../ledger/per-day.js';

/** `KnownDelivery`, by the names of its fields. A key whose day was dropped is missing. Newest notification first. */
export function byKeys(keys: readonly DeliveryKey[]): [Statement, Values] {
  return [
    deliveries,
    { ids: keys.map((key) => key.notificationId), subscription_ids: keys.map((key) => key.subscriptionId) },
  ];
}

// Each LIMIT keeps the planner from joining the other way round, which would read all of a table.
const deliveries = statement(
  'read-deliveries',
  `SELECT d.notification_id AS "notificationId", d.subscription_id AS "subscriptionId", n.channel, n.accepted_at AS "acceptedAt",
     d.state, d.generation, d.attempts, d.failures, d.replays,
     CASE WHEN d.state = 'waiting' THEN d.next_at END AS "nextAttemptAt",
     CASE WHEN d.state = 'held' THEN d.held_for END AS "heldFor", d.held_since AS "heldSince", d.queued_at AS "queuedAt",
     d.expires_at AS "expiresAt", d.last_status AS "lastStatus", d.last_error AS "lastError", d.ended_at AS "endedAt",
     d.replay_id AS "replayId"
   FROM unnest($ids::uuid[], $subscription_ids::uuid[]) AS k (notification_id, subscription_id)
   CROSS JOIN LATERAL (
     SELECT * FROM delivery WHERE notification_id = k.notification_id AND subscription_id = k.subscription_id LIMIT 1
   ) d
   CROSS JOIN LATERAL (SELECT channel, accepted_at FROM notification WHERE id = k.notification_id LIMIT 1) n
   ORDER BY d.notification_id DESC, d.subscription_id DESC`,
);

/** `KnownAttempt` and its key, by the names of their fields, of these deliveries of one day, in their order. */
export const attemptsOf = (day: number, keys: readonly DeliveryKey[], mostOfEach: number): [Statement, Values] => [
  attempts(day),
  bindLatest(keys, mostOfEach),
];

/** Of each of these deliveries of one day, in the order given, how long what `attemptsOf` reads of it is. */
export const lengthsOf = (day: number, keys: readonly DeliveryKey[], mostOfEach: number): [Statement, Values] => [
  lengths(day),
  bindLatest(keys, mostOfEach),
];

const bindLatest = (keys: readonly DeliveryKey[], mostOfEach: number): Values => ({
  ids: keys.map((key) => key.notificationId),
  subscription_ids: keys.map((key) => key.subscriptionId),
  most: mostOfEach,
});

const latest = (of: (table: LedgerTable) => string): string =>
  `SELECT * FROM ${of('attempt')} WHERE notification_id = k.notification_id AND subscription_id = k.subscription_id
     ORDER BY number DESC, started_at DESC LIMIT $most`;

// Of a day that leaves, the attempts do so first: its deliveries are read as ever, and have them.
const attempts = perDay(
  'read-attempts',
  (of) => `
   SELECT a.notification_id AS "notificationId", a.subscription_id AS "subscriptionId", a.number, a.generation,
     a.started_at AS "startedAt", a.duration_ms AS "durationMs", a.connect_ms AS "connectMs", a.first_byte_ms AS "firstByteMs",
     a.status, a.error, a.details
   FROM unnest($ids::uuid[], $subscription_ids::uuid[]) AS k (notification_id, subscription_id)
   CROSS JOIN LATERAL (${latest(of)}) a
   ORDER BY a.notification_id, a.subscription_id, a.number, a.generation`,
);

// Nearly all of it is what receivers answered.
const lengths = perDay(
  'measure-attempts',
  (of) => `
   SELECT (
     SELECT coalesce(sum(coalesce(octet_length(details::text), 0) + coalesce(octet_length(error), 0)), 0)
     FROM (${latest(of)}) AS latest
   )::float8 AS bytes
   FROM unnest($ids::uuid[], $subscription_ids::uuid[]) WITH ORDINALITY AS k (notification_id, subscription_id, nr)
   ORDER BY k.nr`,
);
