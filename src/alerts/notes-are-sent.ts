import type { Postgres } from '../infra/postgres/postgres.js';
import { findTrouble } from './note-rows.js';

/** The rules are evaluated four times a minute. */
const lateSeconds = 120;

/**
 * Why operators are perhaps not told of what happens; undefined: they are. In words for everybody, without names; for
 * health checks.
 */
export async function troubleWithAlerts(postgres: Postgres): Promise<string | undefined> {
  const [row] = (await postgres.checks.query(findTrouble.text)) as [
    { is_late: boolean; is_given_up: boolean; round_seconds: number | null },
  ];
  if (row.is_late) return 'a note of alerts could not be sent; it is tried again';
  if (row.is_given_up) return 'a note of alerts was given up within the last day';
  // Ahead as well: Postgres' clock was set back since.
  if (Math.abs(row.round_seconds ?? 0) > lateSeconds) return 'the rules of alerts are not evaluated';
  return undefined;
}
