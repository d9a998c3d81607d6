import type { Ask } from '../infra/postgres/unfit.js';
import { ok, warning, type Finding } from './finding.js';

/**
 * The scarcest of what this role may have. Of a session of another role, one without pg_read_all_stats sees its
 * database and its user, and not its kind. A role or database without a limit of its own has -1.
 */
export async function examineConnections(ask: Ask): Promise<Finding> {
  const [row] = await ask<{ used: number; most: number; heraut: number; of: string }>(
    `WITH session AS (
       SELECT datname, usename, application_name FROM pg_stat_activity
       WHERE backend_type = 'client backend' OR backend_type IS NULL AND datid IS NOT NULL AND usesysid IS NOT NULL
     ), bound AS (
       SELECT 'max_connections' AS of, count(*)::int AS used,
              current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                - COALESCE(current_setting('reserved_connections', true)::int, 0) AS most
       FROM session
       UNION ALL
       SELECT 'the CONNECTION LIMIT of the role ' || quote_ident(rolname),
              (SELECT count(*)::int FROM session WHERE usename = rolname), rolconnlimit
       FROM pg_roles WHERE rolname = session_user AND rolconnlimit >= 0 AND NOT rolsuper
       UNION ALL
       SELECT 'the CONNECTION LIMIT of the database', (SELECT count(*)::int FROM session WHERE datname = current_database()),
              datconnlimit
       FROM pg_database WHERE datname = current_database() AND datconnlimit >= 0
     )
     SELECT used, most, of, (SELECT count(*)::int FROM session WHERE application_name = 'heraut') AS heraut
     FROM bound ORDER BY most - used LIMIT 1`,
  );
  const { used, most, heraut, of } = row!;
  const found = `${used} of ${most} in use (${of}), ${heraut} by Heraut`;
  const name = 'postgres-connections';
  if (used < most * 0.9) return ok(name, found);
  return warning(
    name,
    found,
    `Raise ${of}, or lower DATABASE_POOL_SIZE or PROCESSES: a process that gets none does nothing.`,
  );
}
