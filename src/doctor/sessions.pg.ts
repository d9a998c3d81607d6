import { visibilityUnfit, type Ask } from '../infra/postgres/unfit.js';
import { failed, ok, warning, type Finding } from './finding.js';

/** Whether it is seen how far subscribers that fetch may read: the same question as src/ledger/horizon.ts asks. */
export async function examineSessions(ask: Ask): Promise<Finding> {
  const name = 'postgres-sessions';
  const unfit = await visibilityUnfit(ask);
  if (unfit) return failed(name, unfit.found, unfit.advice);
  const hidden = await ask<{ role: string; count: number }>(
    `SELECT quote_ident(usename) AS role, count(*)::int AS count FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'heraut'
       AND (state = 'disabled' OR query = '<insufficient privilege>')
     GROUP BY usename ORDER BY usename`,
  );
  if (hidden.length === 0) return ok(name, 'it is seen when the transactions of all processes began');
  const found = hidden.map(({ role, count }) => `${count} of ${role}`).join(', ');
  return warning(
    name,
    `sessions of which it is not seen when their transactions began: ${found}`,
    'Until they end, subscribers that fetch and replays of everything stand still. Have all processes use one role, or GRANT pg_read_all_stats to each; and leave track_activities on.',
  );
}
