import type { Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';

interface BodyDays {
  name: string;
  bodyRetentionDays: number | null;
}

export const bodyDaysOf = statement(
  'read-body-days',
  'SELECT name, body_retention_days AS "bodyRetentionDays" FROM channel WHERE name = ANY ($names::text[])',
);

const allBodyDays = statement(
  'read-all-body-days',
  `SELECT name, body_retention_days AS "bodyRetentionDays", deleted_at IS NOT NULL AS "isRemoved"
   FROM channel ORDER BY name`,
);

/** Of every channel that there is, or was: the notifications of one that was removed are kept as long as it said. */
export const readAllBodyDays = (query: Query) => query<BodyDays & { isRemoved: boolean }>(allBodyDays);

/**
 * As they are committed, not as the directory has them in memory: for whoever is about to erase what cannot be brought
 * back, in the transaction of `query`. A channel that is not there is missing.
 */
export const readBodyDays = (query: Query, names: readonly string[]) => query<BodyDays>(bodyDaysOf, { names });
