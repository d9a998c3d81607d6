import type { Postgres, Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { outdateDigests } from './digests.js';
import type { InOrder } from './line-up.js';
import type { OnceKey } from './once-key.js';
import { dayOfId } from './partitions.js';
import { onDay, perDay } from './per-day.js';

export interface Replacement {
  /** Under which the scheduled notification was published, with the hash of the request that replaces it. */
  request: OnceKey;
  /** The channel's key of the new content; null: it has none, or may be replaced in its turn. */
  content: OnceKey | null;
  channel: string;
  body: string;
  /** W3C trace context; null: it has none. */
  traceParent: string | null;
  /** Milliseconds since 1970; null: may be sent at once. */
  notBefore: number | null;
  /** Milliseconds since 1970; null: always sent. */
  expiresAt: number | null;
  subscriptionIds: string[];
  /** Null: none of them keeps order. */
  inOrder: InOrder | null;
}

export type Replaced =
  | { kind: 'replaced'; notificationId: string }
  /** The new content was published before, as `notificationId`: `withdrawnId` is not sent, and its key leads there. */
  | { kind: 'duplicate'; notificationId: string; withdrawnId: string }
  /** It was, or may have been, handed out, was erased, or is past its retention: too late. */
  | { kind: 'sent' }
  /** The catalogue is at another version than the one it was matched with: match again. */
  | { kind: 'outdated'; version: number };

const lockKey = statement(
  'lock-once-key',
  `SELECT result_id, is_duplicate FROM once_key
   WHERE application = $application AND operation = $operation AND key = $key AND expires_at > now() FOR UPDATE`,
);

/**
 * As `accept-on-terms` does: what is too old to be sent reserves nothing. A row that is in the way stays locked,
 * although it is not changed.
 */
const reserveContent = statement(
  'reserve-content',
  `INSERT INTO once_key AS k (application, operation, key, result_id, expires_at)
   SELECT $application, $operation, $key, $id, now() + $keep_seconds * interval '1 s'
   WHERE coalesce(to_timestamp($expires_ms::float8 / 1000), 'infinity')
     > GREATEST(to_timestamp($not_before_ms::float8 / 1000), now())
   ON CONFLICT (application, operation, key) DO UPDATE SET
     result_id = EXCLUDED.result_id, expires_at = EXCLUDED.expires_at
   WHERE k.expires_at <= now()`,
);

/** For the length of the transaction the catalogue stays at the version found. */
const lockCatalogue = statement('lock-catalogue', 'SELECT version FROM catalogue FOR SHARE');

/**
 * Finds the notification only while it is still to be sent later and nothing of it was handed out or has lined up; a
 * delivery that ended without either is no obstacle. Keeps the dispatcher off its deliveries. One may have lined up
 * although its moment lies ahead of now(): that is when the transaction began, which may since have waited for the
 * catalogue. Without that delivery nobody would pass its turn on, and its object stood still.
 */
const lockScheduled = perDay(
  'lock-scheduled',
  (
    of,
  ) => `WITH mine AS MATERIALIZED (SELECT state, generation, attempts, turn_nr FROM ${of('delivery')} WHERE notification_id = $id FOR UPDATE)
   SELECT id FROM ${of('notification')} n
   WHERE n.id = $id AND n.not_before > now() AND n.body IS NOT NULL
     AND NOT EXISTS (
       SELECT FROM mine
       WHERE turn_nr IS NOT NULL OR NOT (state = 'waiting' AND generation = 1
         OR state IN ('cancelled', 'expired', 'failed') AND generation <= 2 AND attempts = 0)
     )
   FOR UPDATE`,
);

const deleteDeliveries = perDay(
  'delete-deliveries',
  (of) => `DELETE FROM ${of('delivery')} WHERE notification_id = $id`,
);

// Due now at the earliest, as what is published with a moment that is past: the dispatcher does not look among what was
// due long ago. One that moves to another channel is remembered among the bodies that retention kept: it may have
// walked through the day for that channel before, or just now, and would never find it there.
const replace = perDay(
  'replace-notification',
  (of) => `WITH key AS (
     UPDATE once_key SET
       request_hash = $request_hash, expires_at = GREATEST(expires_at, now() + $keep_seconds * interval '1 s')
     WHERE application = $application AND operation = $operation AND key = $key
   ),
   moved AS (
     INSERT INTO kept_body SELECT id FROM ${of('notification')} WHERE id = $id AND channel <> $channel
     ON CONFLICT DO NOTHING
   ),
   replaced AS (
     UPDATE ${of('notification')} SET
       channel = $channel, body = $body, trace_parent = $trace_parent, not_before = to_timestamp($not_before_ms::float8 / 1000)
     WHERE id = $id
   )
   INSERT INTO ${of('delivery')} (notification_id, subscription_id, state, next_at, expires_at, object_key)
   SELECT $id, subscription_id, 'waiting', GREATEST(to_timestamp($not_before_ms::float8 / 1000), now()),
     to_timestamp($expires_ms::float8 / 1000),
     CASE WHEN subscription_id = ANY ($in_order_ids::uuid[]) THEN $object_key::uuid END
   FROM unnest($subscription_ids::uuid[]) AS delivery (subscription_id)`,
);

/** For the operator who finds a delivery cancelled. */
export const replacedByDuplicate = 'its publisher replaced it with the content of another notification';

/** As an erasure leaves it: whoever sends again, or fetches, what was accepted must not get the former text. */
const withdraw = perDay(
  'withdraw-notification',
  (of) => `WITH cancelled AS (
     UPDATE ${of('delivery')} SET
       state = 'cancelled', generation = generation + 1, next_at = NULL, ended_at = now(), last_error = '${replacedByDuplicate}'
     WHERE notification_id = $id AND state = 'waiting'
   )
   UPDATE ${of('notification')} SET body = NULL WHERE id = $id`,
);

const leadTo = statement(
  'lead-key-to-first',
  `UPDATE once_key SET
     result_id = $first, is_duplicate = true, request_hash = $request_hash,
     expires_at = GREATEST(expires_at, now() + $keep_seconds * interval '1 s')
   WHERE application = $application AND operation = $operation AND key = $key`,
);

/**
 * Reserves the content of a replacement for the notification that gets it.
 * @returns the notification that has it already
 */
async function findFirst(
  query: Query,
  { content, notBefore, expiresAt }: Replacement,
  id: string,
): Promise<string | undefined> {
  if (!content) return undefined;
  const { application, operation, key, keepSeconds } = content;
  const name = { application, operation, key };
  const times = { keep_seconds: keepSeconds, not_before_ms: notBefore, expires_ms: expiresAt };
  await query(reserveContent, { ...name, id, ...times });
  const [reserved] = await query<{ result_id: string }>(lockKey, name);
  return reserved && reserved.result_id !== id ? reserved.result_id : undefined;
}

/** Puts other content in the place of a scheduled notification, unless any of it was sent. */
export function replaceScheduled(postgres: Postgres, version: number, replacement: Replacement): Promise<Replaced> {
  const { request, channel, body, traceParent, notBefore, expiresAt, subscriptionIds, inOrder } = replacement;
  const key = { application: request.application, operation: request.operation, key: request.key };
  return postgres.transaction(async (query): Promise<Replaced> => {
    const [reserved] = await query<{ result_id: string; is_duplicate: boolean }>(lockKey, key);
    // The key of a duplicate leads to another publisher's notification, which is not this publisher's to change.
    if (!reserved || reserved.is_duplicate) return { kind: 'sent' };
    const [catalogue] = await query<{ version: string }>(lockCatalogue);
    if (Number(catalogue!.version) !== version) return { kind: 'outdated', version: Number(catalogue!.version) };
    const id = reserved.result_id;
    const day = dayOfId(id);
    // The key may outlive the day: it is kept from when the notification is due, the day from when it was accepted. The
    // COMMIT after a statement that failed only rolls back.
    const locked = await onDay(query(lockScheduled(day), { id }), []);
    if (locked.length === 0) return { kind: 'sent' };
    const first = await findFirst(query, replacement, id);
    await outdateDigests(query, [id]);
    const repetition = { ...key, request_hash: request.requestHash, keep_seconds: request.keepSeconds };
    if (first !== undefined) {
      await query(withdraw(day), { id });
      await query(leadTo, { ...repetition, first });
      return { kind: 'duplicate', notificationId: first, withdrawnId: id };
    }
    await query(deleteDeliveries(day), { id });
    await query(replace(day), {
      ...repetition,
      id,
      channel,
      body,
      trace_parent: traceParent,
      not_before_ms: notBefore,
      expires_ms: expiresAt,
      subscription_ids: subscriptionIds,
      in_order_ids: [...(inOrder?.subscriptionIds ?? [])],
      object_key: inOrder?.objectKey ?? null,
    });
    return { kind: 'replaced', notificationId: id };
  });
}
