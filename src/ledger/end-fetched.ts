import type { Postgres } from '../infra/postgres/postgres.js';
import { readDays } from './days.js';
import { fetchedCounted } from './ledger.counters.js';
import { namedDeliveries, keyOf, notificationIdOf, sameDelivery, type DeliveryKey, type KeyRow } from './delivery.js';
import { outOfLine } from './line-up.js';
import { passTurns } from './pass-turn.js';
import { byDay, onDay, perDay } from './per-day.js';

/** Of a delivery that is delivered although no call has succeeded. */
export const fetchedBySubscriber = 'fetched by its subscriber';

// One that is still to be sent later may yet get other content, so nobody has fetched it.
export const endFetchedItems = perDay(
  'end-fetched',
  (of) => `
    WITH changed AS (
      UPDATE ${of('delivery')} d SET
        state = 'delivered', held_for = NULL, next_at = NULL, process = NULL, generation = d.generation + 1, ended_at = now(),
        last_error = '${fetchedBySubscriber}'
      FROM ${namedDeliveries.from}
      WHERE ${sameDelivery('item')} AND d.state::text NOT IN ('delivered', 'cancelled') AND NOT EXISTS (
        SELECT FROM ${of('notification')} n WHERE n.id = d.notification_id AND n.not_before > now()
      )
      RETURNING d.notification_id, d.subscription_id, d.object_key, d.turn_nr
    ),
    ${outOfLine('changed')}
    SELECT notification_id, subscription_id FROM changed`,
);

/**
 * Ends deliveries whose notification their subscriber has: they are delivered, dead letters too. A call that is being
 * made is not taken back. The next in line about the same object goes then.
 * @param ended told how many of a day have ended, also where it fails for others, or afterwards: they are written, and
 *   the next time they have ended before
 * @returns those that had not ended as delivered or cancelled before
 */
export async function endFetched(
  postgres: Postgres,
  deliveries: readonly DeliveryKey[],
  ended: (count: number) => void = () => {},
): Promise<DeliveryKey[]> {
  const rows: KeyRow[] = [];
  const wanted = byDay(deliveries, notificationIdOf);
  // A client may name a day in each id: days that there are not cost nothing, and the others one connection.
  for (const { day } of await readDays(postgres)) {
    const items = wanted.get(day);
    if (!items) continue;
    const changed = await onDay(postgres.query<KeyRow>(endFetchedItems(day), namedDeliveries.bind(items)), []);
    rows.push(...changed);
    fetchedCounted.inc(changed.length);
    ended(changed.length);
  }
  const keys = rows.map(keyOf);
  await passTurns(postgres, keys, { state: 'waiting', delayMs: 0 });
  return keys;
}
