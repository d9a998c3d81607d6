import type { Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';

export const bodyDaysOf = statement(
  'read-body-days',
  'SELECT name, body_retention_days AS "bodyRetentionDays" FROM channel WHERE name = ANY ($names::text[])',
);

/**
 * As they are committed, not as the directory has them in memory: for whoever is about to erase what cannot be brought back, in the
 * transaction of `query`. A channel that is not there is missing.
 */
export const readBodyDays = (query: Query, names: readonly string[]) =>
  query<{ name: string; bodyRetentionDays: number | null }>(bodyDaysOf, { names });
