import type { Query } from '../infra/postgres/postgres.js';
import { rowsOf } from '../infra/postgres/statement.js';
import { keyColumns, sameDelivery, type DeliveryKey, type DeliveryState, type HeldReason } from './delivery.js';
import { outdateDigests } from './digests.js';
import { firstCredit, lookSoon } from './held-subscriptions.js';
import { keepsOrder, liningUp, mayHaveTurn, nextPlace } from './line-up.js';
import { perDay } from './per-day.js';
import { renewTextVersions } from './text-versions.js';

/** A delivery that is sent again, or for the first time. */
export interface SentAgain extends DeliveryKey {
  /** There was none: its subscription would have got it, had it been there. */
  isNew: boolean;
  /** Why it may not be sent now; undefined: it may. */
  heldFor: HeldReason | undefined;
  /** Of a new one whose subscription keeps order: stands for the object. */
  objectKey: string | null;
}

export const sentAgain = rowsOf<SentAgain & { nr: number }>('item', {
  nr: ['int', (item) => item.nr],
  ...keyColumns,
  is_new: ['bool', (item) => item.isNew],
  held_for: ['text', (item) => item.heldFor ?? ''],
  object_key: ['uuid', (item) => item.objectKey],
});

/*
 * As `retryOne` does with one delivery, but those that keep order line up here, in the order in which they are given,
 * and not when they are due: two dispatchers may line up what is due at the same time. One that may not be sent now is
 * held at once, without a way through the queue. Each is due a microsecond after the one before it, so that they are
 * handed out in their order. One that is scheduled waits for its time, and lines up or is held then, as one that was
 * just accepted.
 *
 * One that has reached another state meanwhile is left as it is.
 */
export const sendAgainItems = perDay(
  'send-again',
  (of) => `
    WITH item AS MATERIALIZED (SELECT * FROM ${sentAgain.from}),
    known AS MATERIALIZED (
      SELECT item.nr, d.notification_id, d.subscription_id, d.object_key, d.turn_nr, item.held_for FROM item JOIN ${of('delivery')} d
        ON ${sameDelivery('item')} AND d.state::text = ANY ($states::text[])
      WHERE NOT item.is_new ORDER BY item.nr FOR UPDATE OF d
    ),
    listed AS MATERIALIZED (
      SELECT *, (SELECT not_before FROM ${of('notification')} WHERE id = each.notification_id AND not_before > now()) AS not_before
      FROM (
        SELECT nr, notification_id, subscription_id, object_key, turn_nr, held_for, false AS is_new FROM known
        UNION ALL SELECT nr, notification_id, subscription_id, object_key, NULL, held_for, true FROM item WHERE is_new
      ) AS each
    ),
    ${liningUp(`(SELECT * FROM listed WHERE object_key IS NOT NULL AND not_before IS NULL AND ${keepsOrder('listed')}) AS lining_up`)},
    placed AS MATERIALIZED (
      SELECT nr, notification_id, subscription_id, object_key, is_new, not_before,
        CASE WHEN is_behind THEN 'order' WHEN not_before IS NULL THEN nullif(held_for, '') END::held_reason AS held_for,
        CASE
          WHEN not_before IS NOT NULL THEN CASE WHEN turn_nr <= 0 THEN ${mayHaveTurn} END
          WHEN is_behind THEN ${nextPlace}
          WHEN object_key IS NOT NULL THEN 0
        END AS turn_nr
      FROM (
        SELECT *, (notification_id, subscription_id) IN (SELECT notification_id, subscription_id FROM behind) AS is_behind
        FROM listed ORDER BY nr
      ) AS l
    ),
    next AS MATERIALIZED (
      SELECT *, CASE WHEN held_for IS NULL THEN 'waiting' ELSE 'held' END::delivery_state AS state,
        CASE WHEN held_for IS NULL THEN GREATEST(not_before, now() + nr * interval '1 us') END AS next_at,
        CASE WHEN held_for IS NOT NULL THEN now() END AS held_since
      FROM placed
    ),
    changed AS (
      UPDATE ${of('delivery')} d SET
        state = next.state, held_for = next.held_for, held_since = next.held_since, next_at = next.next_at, turn_nr = next.turn_nr,
        process = NULL, generation = d.generation + 1, ended_at = NULL, failures = 0, replays = d.replays + 1,
        expires_at = CASE WHEN d.expires_at > now() THEN d.expires_at END, replay_id = $replay
      FROM next WHERE ${sameDelivery('next')} AND NOT next.is_new
      RETURNING d.notification_id
    ),
    made AS (
      INSERT INTO ${of('delivery')}
        (notification_id, subscription_id, state, held_for, held_since, next_at, object_key, turn_nr, replay_id)
      SELECT notification_id, subscription_id, state, held_for, held_since, next_at, object_key, turn_nr, $replay
      FROM next WHERE is_new ORDER BY nr
      ON CONFLICT DO NOTHING
      RETURNING notification_id
    ),
    in_line AS (
      INSERT INTO in_line (subscription_id, object_key, turn_nr, notification_id)
      SELECT subscription_id, object_key, turn_nr, notification_id FROM placed WHERE turn_nr > 0
    ),
    -- each row, however new, unlike \`holding\`: it stays locked, so that it is not forgotten before a long transaction commits
    holding AS (
      INSERT INTO held_subscription AS s (subscription_id, rate_credit)
      SELECT DISTINCT subscription_id, ${firstCredit} FROM placed WHERE held_for <> 'order' ORDER BY subscription_id
      ON CONFLICT (subscription_id) DO UPDATE SET held_at = now(), look_at = ${lookSoon}
    )
    SELECT ((SELECT count(*) FROM changed) + (SELECT count(*) FROM made))::int AS sent`,
);

/**
 * Sends deliveries of one day again, from those `states`, and those for the first time that there were not. Runs in a
 * transaction.
 * @param items in the order in which they are to be sent
 * @param replay id of the operator's work that wants it
 * @param behind as many as the same transaction has sent before: these are due after them
 * @returns how many are sent; the others have reached another state, there is one by now, or their text was erased
 */
export async function sendAgain(
  query: Query,
  day: number,
  items: readonly SentAgain[],
  { states, replay, behind = 0 }: { states: readonly DeliveryState[]; replay: string; behind?: number },
): Promise<number> {
  if (items.length === 0) return 0;
  const ids = items.map(({ notificationId }) => notificationId);
  const withText = await renewTextVersions(query, day, ids);
  const sendable = items.filter(({ notificationId }) => withText.has(notificationId));
  const withNewOnes = sendable.filter(({ isNew }) => isNew).map(({ notificationId }) => notificationId);
  if (withNewOnes.length > 0) await outdateDigests(query, withNewOnes);
  const rows = sentAgain.bind(sendable.map((item, index) => ({ ...item, nr: behind + index + 1 })));
  const [row] = await query<{ sent: number }>(sendAgainItems(day), { ...rows, states, replay });
  return row!.sent;
}
