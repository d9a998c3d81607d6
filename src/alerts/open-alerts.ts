import type { Postgres } from '../infra/postgres/postgres.js';
import { alertPage, countItems } from './alert-rows.js';
import type { Alert } from './alert.js';

/** How many alerts are open, and the last ones that were opened. */
export async function readOpenAlerts(postgres: Postgres, limit: number): Promise<{ count: number; latest: Alert[] }> {
  const [counts, latest] = await Promise.all([
    postgres.queryAside<{ count: number }>(countItems),
    postgres.queryAside<Alert>(...alertPage({ state: 'open' }, limit)),
  ]);
  return { count: counts.reduce((sum, { count }) => sum + count, 0), latest };
}
