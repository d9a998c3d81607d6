import type { Postgres } from '../infra/postgres/postgres.js';
import { rowsOf, statement, type Statement } from '../infra/postgres/statement.js';
import { bindHandOut, type HandOut } from './acceptance.js';
import {
  keyOf,
  namedDeliveries,
  nameOf,
  notificationIdOf,
  sameDelivery,
  type DeliveryKey,
  type KeyRow,
} from './delivery.js';
import { isHeldAfter } from './drop-held.js';
import { handedOutColumns, readHandedOut, withText, type HandedOutRow, type HandedOutTogether } from './handed-out.js';
import { samePlace, sameTurn } from './line-up.js';
import { onDay, onEachDay, perDay, perTwoDays } from './per-day.js';

/*
 * A delivery that ends keeps the turn of its object (line-up.ts) until the turn is passed on: `turn_nr` stays 0,
 * however it ended. Its worker passes it on at once; a rule of the dispatcher finds what was left, by an index of just
 * those.
 *
 * Each statement is a transaction of its own, so that no process that stops between two of them keeps a row locked,
 * which publishers of the same object wait for. Any of them may be the last: what it leaves is found again.
 */

/**
 * A common table expression: those of `items` that have ended and may still have their turn. They stay as they are
 * while the statement runs: whoever sends one of them again, and has it line up, locks it first. `coalesce` keeps the
 * planner from the index of what was left; see `stillHandedOut`.
 */
const stillEnded = (items: string, deliveries: string, columns = 'item.*'): string => `
    ended AS MATERIALIZED (
      SELECT ${columns} FROM ${items} JOIN ${deliveries} d ON ${sameDelivery('item')}
        AND coalesce(d.turn_nr, 1) <= 0 AND d.ended_at IS NOT NULL
      FOR UPDATE OF d SKIP LOCKED
    )`;

/**
 * Gives up the turns behind which nobody has lined up: nearly all. The row of the turn is locked, so `lined_up` is what
 * it is now, not what it was when the statement began. Returns the others, which are to be passed on. Each turn is
 * looked up, and locked, in a subquery of its own: a join may read the whole table of turns. In the order of the key,
 * as those who line up lock them.
 */
export const endTurnItems = perDay(
  'end-turns',
  (of) => `
    WITH ${stillEnded(namedDeliveries.from, of('delivery'), 'd.notification_id, d.subscription_id, d.object_key')},
    turns AS MATERIALIZED (
      SELECT t.* FROM (SELECT * FROM ended ORDER BY subscription_id, object_key) AS ended CROSS JOIN LATERAL (
        SELECT * FROM turn t WHERE ${sameTurn('ended')} AND t.notification_id = ended.notification_id FOR UPDATE
      ) t
    ),
    given_up AS (DELETE FROM turn t USING turns WHERE turns.lined_up = 0 AND ${sameTurn('turns')}),
    over AS (
      UPDATE ${of('delivery')} d SET turn_nr = NULL FROM ended
      WHERE ${sameDelivery('ended')} AND (ended.notification_id, ended.subscription_id) NOT IN (
        SELECT notification_id, subscription_id FROM turns WHERE lined_up > 0
      )
    )
    SELECT notification_id, subscription_id, object_key, lined_up FROM turns WHERE lined_up > 0`,
);

interface TurnRow extends KeyRow {
  object_key: string;
  lined_up: number;
}

export const awaitedTurns = rowsOf<TurnRow>('item', {
  notification_id: ['uuid', (row) => row.notification_id],
  subscription_id: ['uuid', (row) => row.subscription_id],
  object_key: ['uuid', (row) => row.object_key],
  lined_up: ['int', (row) => row.lined_up],
});

/**
 * Looks up and locks the turns of `ended`, as far as they still are with the delivery that ended; see `endTurnItems`.
 */
const lockedTurns = `
      FROM (SELECT * FROM ended ORDER BY subscription_id, object_key) AS item CROSS JOIN LATERAL (
        SELECT * FROM turn t WHERE ${sameTurn('item')} AND t.notification_id = item.notification_id FOR UPDATE
      ) t`;

/**
 * Finds the first in line of each object. Where there is none, the turn is given up, but only if nobody has lined up
 * since `lined_up` was read, before this statement began: one who has may not be seen by it. The first that is seen is
 * the right one all the same: what was accepted before that was published is seen as well.
 */
export const findNextItems = perDay(
  'first-in-line',
  (of) => `
    WITH ${stillEnded(awaitedTurns.from, of('delivery'))},
    mine AS MATERIALIZED (SELECT t.*, t.lined_up = item.lined_up AS is_certain ${lockedTurns}),
    next AS MATERIALIZED (
      SELECT mine.*, first.notification_id AS next_id, first.turn_nr FROM mine LEFT JOIN LATERAL (
        SELECT l.notification_id, l.turn_nr FROM in_line l
        WHERE l.subscription_id = mine.subscription_id AND l.object_key = mine.object_key ORDER BY l.turn_nr LIMIT 1
      ) first ON true
    ),
    given_up AS (DELETE FROM turn t USING next WHERE next.next_id IS NULL AND next.is_certain AND ${sameTurn('next')})
    SELECT notification_id, subscription_id, object_key, next_id, turn_nr FROM next WHERE next_id IS NOT NULL`,
);

interface NextRow extends KeyRow {
  object_key: string;
  /** The notification whose delivery comes next. */
  next_id: string;
  turn_nr: string;
}

export const nextInLine = rowsOf<NextRow>('item', {
  notification_id: ['uuid', (row) => row.notification_id],
  subscription_id: ['uuid', (row) => row.subscription_id],
  object_key: ['uuid', (row) => row.object_key],
  next_id: ['uuid', (row) => row.next_id],
  turn_nr: ['bigint', (row) => row.turn_nr],
});

/** Of one that gets the turn: it is dated a moment ahead (accept-on-terms.ts), and waits for that. */
const isAhead = 'coalesce(d.next_at > now(), false)';
const isDropped = `(mine.drop_noted_at IS NOT NULL AND NOT ${isHeldAfter('d', 'mine.drop_noted_at')})`;
const isQueuedNow = `$state::text = 'queued' AND NOT ${isDropped} AND NOT ${isAhead}`;

/**
 * Passes each turn to the delivery that was found to be next, which is handed out, unless it is ahead of its date. Or
 * it is cancelled, where an operator has it dropped with all that its subscription holds (drop-held.ts): handed out it
 * would be held anew by its worker, when the drop may be over. It has ended with the turn then, which is passed on like
 * any other. The one that has the turn may have been sent again meanwhile, and have found its turn still its own: then
 * it has not ended any more, and keeps it. Not `lined_up` tells that: somebody lines up all the time where much is
 * published about the object, and its turn would never be passed on. A delivery that has lined up since is behind the
 * next one. One that is no longer in line (cancelled, or ended with its subscription) never is again in that place, so
 * its row goes, and the next one is looked for.
 */
export const passTurnItems = perTwoDays(
  'pass-turns',
  (of, ofEnded) => `
    WITH ${stillEnded(nextInLine.from, ofEnded('delivery'))},
    mine AS MATERIALIZED (
      SELECT t.subscription_id, t.object_key, item.next_id AS notification_id, item.turn_nr,
        (
          SELECT noted_at FROM held_drop AS noted
          WHERE noted.subscription_id = t.subscription_id AND noted.up_to >= item.next_id
        ) AS drop_noted_at
      ${lockedTurns}
    ),
    handed_out AS (
      UPDATE ${of('delivery')} d SET
        state = CASE WHEN ${isDropped} THEN 'cancelled' WHEN ${isAhead} THEN 'waiting' ELSE $state END::delivery_state,
        held_for = NULL, turn_nr = 0,
        generation = d.generation + CASE WHEN ${isDropped} OR ${isQueuedNow} THEN 1 ELSE 0 END,
        ended_at = CASE WHEN ${isDropped} THEN now() END,
        next_at = CASE WHEN ${isDropped} THEN NULL WHEN ${isAhead} THEN d.next_at ELSE now() + $delay_ms * interval '1 ms' END,
        queued_at = CASE WHEN ${isQueuedNow} THEN now() END,
        process = CASE WHEN ${isQueuedNow} THEN $process END
      FROM mine
      WHERE ${sameDelivery('mine')} AND d.state::text = 'held' AND d.held_for = 'order' AND d.turn_nr = mine.turn_nr
      RETURNING ${handedOutColumns}, d.object_key, d.state
    ),
    passed AS (UPDATE turn t SET notification_id = h.notification_id FROM handed_out h WHERE ${sameTurn('h')}),
    out_of_line AS (
      DELETE FROM in_line l USING mine WHERE ${samePlace('mine')} AND (
        (mine.notification_id, mine.subscription_id) IN (SELECT notification_id, subscription_id FROM handed_out)
        OR NOT EXISTS (
          SELECT FROM ${of('delivery')} d
          WHERE ${sameDelivery('mine')} AND d.state::text = 'held' AND d.held_for = 'order' AND d.turn_nr = mine.turn_nr
        )
      )
    )
    ${withText('(SELECT * FROM handed_out WHERE state = $state::delivery_state)', of('notification'))}`,
);

export const leaveLineItems = statement(
  'leave-line',
  `DELETE FROM in_line l USING ${nextInLine.from} WHERE ${samePlace('item')}`,
);

/**
 * For one delivery, at most: a line may be long, or grow all the time. A rule of the dispatcher finds the turns that
 * are left then.
 */
export const mostRounds = 100;

/**
 * Passes on the turns of those deliveries that have ended; does nothing for the others.
 * @param handOut the state of those that get the turn: queued, they are for the caller to publish
 * @returns the deliveries that have got it
 */
export async function passTurns(
  postgres: Postgres,
  ended: readonly DeliveryKey[],
  handOut: HandOut,
): Promise<HandedOutTogether> {
  const passedOn: HandedOutRow[] = [];
  let left = ended;
  for (let round = 0; left.length > 0 && round < mostRounds; round++)
    left = await passEach(postgres, left, handOut, passedOn);
  return readHandedOut(passedOn);
}

/**
 * One round of `passTurns`.
 * @param got told which deliveries have got a turn, also where it fails for others: they are handed out, and nobody
 *   else publishes them
 * @returns of `ended`, those that need another round, be it to find that their turn is no longer theirs
 */
export async function passTurnsOnce<Ended extends DeliveryKey>(
  postgres: Postgres,
  ended: readonly Ended[],
  handOut: HandOut,
  got: (passedOn: HandedOutTogether) => void,
): Promise<Ended[]> {
  const passedOn: HandedOutRow[] = [];
  try {
    const names = new Set((await passEach(postgres, ended, handOut, passedOn)).map(nameOf));
    return ended.filter((key) => names.has(nameOf(key)));
  } finally {
    got(readHandedOut(passedOn));
  }
}

/**
 * @param passedOn gets those that are handed out, also where others fail
 * @returns those whose turn somebody waits for
 */
async function passEach(
  postgres: Postgres,
  ended: readonly DeliveryKey[],
  handOut: HandOut,
  passedOn: HandedOutRow[],
): Promise<DeliveryKey[]> {
  const awaited = await onEachDay(ended, notificationIdOf, (day, items) =>
    postgres.query<TurnRow>(endTurnItems(day), namedDeliveries.bind(items)),
  );
  if (awaited.length > 0) await passToNext(postgres, awaited, handOut, passedOn);
  return awaited.map(keyOf);
}

async function passToNext(
  postgres: Postgres,
  awaited: readonly TurnRow[],
  handOut: HandOut,
  passedOn: HandedOutRow[],
): Promise<void> {
  const next = await onEachDay(
    awaited,
    (row) => row.notification_id,
    (day, rows) => postgres.query<NextRow>(findNextItems(day), awaitedTurns.bind(rows)),
  );
  await onEachDay(
    next,
    (row) => row.next_id,
    (day, ofDay) =>
      onEachDay(
        ofDay,
        (row) => row.notification_id,
        async (dayOfEnded, rows) => {
          passedOn.push(...(await passTo(postgres, passTurnItems(day, dayOfEnded), rows, handOut)));
          return [];
        },
      ),
  );
}

/** A day is dropped only with no turn left in it to be passed on: then it was that of those that are next. */
async function passTo(
  postgres: Postgres,
  passing: Statement,
  rows: readonly NextRow[],
  handOut: HandOut,
): Promise<HandedOutRow[]> {
  const values = { ...nextInLine.bind(rows), ...bindHandOut(handOut) };
  const passed = await onDay<HandedOutRow[] | 'dropped'>(postgres.query(passing, values), 'dropped');
  if (passed !== 'dropped') return passed;
  await postgres.query(leaveLineItems, nextInLine.bind(rows));
  return [];
}

export const findLeftItems = statement(
  'find-turns-left',
  `SELECT notification_id, subscription_id FROM delivery
   WHERE turn_nr <= 0 AND ended_at IS NOT NULL
     AND ended_at >= to_timestamp($since_ms::float8 / 1000) AND ended_at <= now() - $for_ms * interval '1 ms'
   ORDER BY ended_at LIMIT $limit`,
);

/**
 * Deliveries that ended that long ago, and whose turn was not passed on.
 * @param sinceMs milliseconds since 1970, by Postgres' clock: of those that ended after that
 */
export async function findTurnsLeft(
  postgres: Postgres,
  sinceMs: number,
  forMs: number,
  limit: number,
): Promise<DeliveryKey[]> {
  const rows = await postgres.query<KeyRow>(findLeftItems, { since_ms: sinceMs, for_ms: forMs, limit });
  return rows.map(keyOf);
}
