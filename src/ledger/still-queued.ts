import type { Postgres } from '../infra/postgres/postgres.js';
import {
  generationOf,
  generationsIn,
  handedOut,
  notificationIdOf,
  stillHandedOut,
  type Delivery,
  type KeyRow,
} from './delivery.js';
import { onEachDay, perDay } from './per-day.js';

export const findStillQueued = perDay(
  'still-queued',
  (of) => `
    SELECT d.notification_id, d.subscription_id, d.generation, (SELECT version FROM catalogue) AS catalogue_version
    FROM ${handedOut.from} JOIN ${of('delivery')} d ON ${stillHandedOut}`,
);

export interface StillQueued<D> {
  deliveries: D[];
  /** Of the catalogue when they were looked up: a subscription may be gone since they were handed out. */
  catalogueVersion: number;
}

/** Of deliveries that came out of the queue late or twice, those that are still to be sent. */
export async function stillQueued<D extends Delivery>(postgres: Postgres, deliveries: D[]): Promise<StillQueued<D>> {
  const rows = await onEachDay(deliveries, notificationIdOf, (day, items) =>
    postgres.query<KeyRow & { generation: number; catalogue_version: string }>(
      findStillQueued(day),
      handedOut.bind(items),
    ),
  );
  const found = generationsIn(rows);
  return {
    deliveries: deliveries.filter((delivery) => found.has(generationOf(delivery))),
    catalogueVersion: rows.reduce((latest, row) => Math.max(latest, Number(row.catalogue_version)), 0),
  };
}
