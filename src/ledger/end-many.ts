import type { Query } from '../infra/postgres/postgres.js';
import { namedDeliveries, sameDelivery, type DeliveryKey, type DeliveryState } from './delivery.js';
import { outOfLine } from './line-up.js';
import { perDay } from './per-day.js';

/*
 * An operator cancels unfinished deliveries: the generation rises, so that only a success of a call that is under way
 * still counts. Or closes dead letters: those keep the time of their end, what they died of, and their generation. They
 * have ended, so no other result counts for them anyway, and a scheduled one of which nothing was handed out can still
 * be told by it (replace-scheduled.ts). Not that of `unknown` ones, which were handed out, and called perhaps.
 */
export const endManyItems = perDay(
  'end-many',
  (of) => `
    WITH changed AS (
      UPDATE ${of('delivery')} d SET
        state = 'cancelled', held_for = NULL, next_at = NULL, process = NULL,
        generation = d.generation + CASE WHEN d.ended_at IS NULL OR d.state = 'unknown' THEN 1 ELSE 0 END,
        ended_at = coalesce(d.ended_at, now()), replay_id = $replay
      FROM ${namedDeliveries.from}
      WHERE ${sameDelivery('item')} AND d.state::text = ANY ($states::text[])
      RETURNING d.subscription_id, d.object_key, d.turn_nr
    ),
    ${outOfLine('changed')}
    SELECT count(*)::int AS ended FROM changed`,
);

/**
 * Deliveries of one day that are in one of these states become `cancelled`. Runs in a transaction.
 * @param replay id of the operator's work that wants it
 * @returns how many
 */
export async function endMany(
  query: Query,
  day: number,
  keys: readonly DeliveryKey[],
  { states, replay }: { states: readonly DeliveryState[]; replay: string },
): Promise<number> {
  if (keys.length === 0) return 0;
  const [row] = await query<{ ended: number }>(endManyItems(day), { ...namedDeliveries.bind(keys), states, replay });
  return row!.ended;
}
