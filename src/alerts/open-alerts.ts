import type { Postgres } from '../infra/postgres/postgres.js';
import { alertPage, countItems, toAlert, type AlertRow } from './alert-rows.js';
import type { Alert } from './alert.js';

/** How many alerts are open, and the last ones that were opened. For people, so it uses TypeORM's pool. */
export async function readOpenAlerts(
  { dataSource }: Postgres,
  limit: number,
): Promise<{ count: number; latest: Alert[] }> {
  const { text, values } = alertPage({ state: 'open' }, limit);
  const [counts, rows] = await Promise.all([
    dataSource.query<{ count: number }[]>(countItems.text),
    dataSource.query<AlertRow[]>(text, values),
  ]);
  return { count: counts.reduce((sum, { count }) => sum + count, 0), latest: rows.map(toAlert) };
}
