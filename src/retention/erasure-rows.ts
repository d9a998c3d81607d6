import { rowsOf, statement } from '../infra/postgres/statement.js';
import type { CancelledByErasure } from '../ledger/cancel-erased.js';
import { namedDeliveries, sameDelivery } from '../ledger/delivery.js';

/**
 * Seconds after which what came of the last call of a delivery is in the ledger: it waits up to 30 for its turn
 * (src/ledger/settle.service.ts), then for its statement, and something is left for a process that is late.
 * @param databaseTimeout seconds that a statement may take
 */
export const settledWithin = (databaseTimeout: number): number => 30 + databaseTimeout + 15;

export const addErasure = statement(
  'add-erasure',
  `INSERT INTO erasure (id, notification_id, main_object, main_object_hash, state, reached)
   VALUES ($id, $notification, $main_object, $main_object_hash, $state, $reached)`,
);

/** Those of an `Erasure`. */
const columns = `e.id, e.notification_id AS "notificationId", e.main_object_hash AS "mainObjectHash", e.state,
  e.requested_at AS "requestedAt", e.confirmed_at AS "confirmedAt", e.done_at AS "doneAt", e.reached, e.found::float8 AS found,
  e.erased::float8 AS erased, e.cancelled::float8 AS cancelled,
  (SELECT count(*) FROM erased_delivery d WHERE d.erasure_id = e.id)::int AS unsettled`;

export const findErasure = statement('find-erasure', `SELECT ${columns} FROM erasure e WHERE id = $id`);

export const listErasures = statement(
  'list-erasures',
  `SELECT ${columns} FROM erasure e WHERE $before::uuid IS NULL OR id < $before ORDER BY id DESC LIMIT $limit`,
);

export const lockErasure = statement(
  'lock-erasure',
  'SELECT state, found::float8 AS found FROM erasure WHERE id = $id FOR UPDATE',
);

export const confirmErasure = statement(
  'confirm-erasure',
  `UPDATE erasure SET state = 'erasing', confirmed_at = now(), reached = $reached WHERE id = $id`,
);

/** Of each kind, in one round. */
export const mostOpen = 100;

/**
 * The oldest that are counted or erased, and the next of those that only wait until what workers have of them is gone.
 * These take a minute and more: among the others, a hundred of them would keep all newer erasures from being begun.
 */
export const findOpen = statement(
  'open-erasures',
  `(SELECT id, false AS is_ending FROM erasure WHERE state IN ('counting', 'erasing') ORDER BY id LIMIT ${mostOpen})
   UNION ALL
   (SELECT id, true FROM erasure WHERE state = 'ending' AND id > $after ORDER BY id LIMIT ${mostOpen})`,
);

/** For one step of the one process that works it off; another one passes it over meanwhile. */
export const claimErasure = statement(
  'claim-erasure',
  `SELECT notification_id, main_object, state, reached FROM erasure
   WHERE id = $id AND state IN ('counting', 'erasing') FOR UPDATE SKIP LOCKED`,
);

export interface ClaimedRow {
  notification_id: string | null;
  main_object: string | null;
  state: 'counting' | 'erasing';
  reached: string;
}

export const noteStep = statement(
  'note-erasure-step',
  `UPDATE erasure SET state = $state, reached = $reached, found = found + $found, erased = erased + $erased,
     counted_at = CASE WHEN $state = 'counted' THEN now() ELSE counted_at END
   WHERE id = $id`,
);

export const noteCancelled = statement(
  'note-erasure-cancelled',
  'UPDATE erasure SET cancelled = cancelled + $cancelled WHERE id = $id',
);

/** The main object itself is forgotten here. */
export const endErasure = statement(
  'end-erasure',
  `UPDATE erasure SET state = 'done', done_at = now(), main_object = NULL
   WHERE id = $id AND state = 'ending' AND NOT EXISTS (SELECT FROM erased_delivery WHERE erasure_id = $id)
   RETURNING found::float8 AS found, erased::float8 AS erased, cancelled::float8 AS cancelled`,
);

/** A process of an older version does not say when it had counted. */
export const abandonErasures = statement(
  'abandon-erasures',
  `UPDATE erasure SET state = 'abandoned', main_object = NULL
   WHERE state = 'counted' AND coalesce(counted_at, requested_at) < now() - interval '1 day'`,
);

/** As long as the audit log has it. Processes of an older version may have left deliveries of one that is done. */
export const forgetErasures = statement(
  'forget-erasures',
  `WITH forgotten AS (
     DELETE FROM erasure WHERE state IN ('done', 'abandoned') AND requested_at < now() - $days * interval '1 day'
     RETURNING id
   )
   DELETE FROM erased_delivery USING forgotten WHERE erasure_id = forgotten.id`,
);

export const unsettled = rowsOf<CancelledByErasure>('item', {
  notification_id: ['uuid', (item) => item.notificationId],
  subscription_id: ['uuid', (item) => item.subscriptionId],
  replays: ['int', (item) => item.replays],
  was_queued: ['boolean', (item) => item.wasQueued],
  call_ends_ms: ['float8', (item) => item.callEndsAt?.getTime() ?? null],
});

/** One that was cancelled, sent again by an operator, and cancelled again has another key. */
export const addUnsettled = statement(
  'add-erased-deliveries',
  `INSERT INTO erased_delivery AS d (erasure_id, notification_id, subscription_id, replays, was_queued, gone_at)
   SELECT $id::uuid, notification_id, subscription_id, replays, was_queued,
     to_timestamp(call_ends_ms / 1000) + $settled_within::float8 * interval '1 s'
   FROM ${unsettled.from}
   ON CONFLICT (erasure_id, notification_id, subscription_id) DO UPDATE SET
     replays = EXCLUDED.replays, was_queued = d.was_queued OR EXCLUDED.was_queued, gone_at = EXCLUDED.gone_at
   WHERE d.replays < EXCLUDED.replays`,
);

export const findUnsealed = statement(
  'unsealed-erased-deliveries',
  `SELECT notification_id, subscription_id, replays FROM erased_delivery
   WHERE erasure_id = $id AND gone_at IS NULL
     AND (notification_id, subscription_id) > ($after_notification::uuid, $after_subscription::uuid)
   ORDER BY notification_id, subscription_id LIMIT $limit`,
);

export const noteSealed = statement(
  'note-erased-delivery-sealed',
  `UPDATE erased_delivery SET
     gone_at = now() + CASE WHEN was_queued THEN $settled_within::float8 ELSE 0 END * interval '1 s'
   WHERE erasure_id = $id AND notification_id = $notification AND subscription_id = $subscription`,
);

export const findGone = statement(
  'gone-erased-deliveries',
  `SELECT notification_id, subscription_id FROM erased_delivery
   WHERE erasure_id = $id AND gone_at <= now() ORDER BY gone_at LIMIT $limit`,
);

export const forgetGone = statement(
  'forget-erased-deliveries',
  `DELETE FROM erased_delivery d USING ${namedDeliveries.from} WHERE d.erasure_id = $id AND ${sameDelivery('item')}`,
);
