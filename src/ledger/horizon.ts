import { Logger } from '@nestjs/common';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import type { Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { longestTimeout } from '../liveness/heartbeat.service.js';
import { lowestIdAt } from './partitions.js';

/** The ledger's time, as a process reckons it, may be wrong by less than this. */
const slackMs = 1000;

// Transactions of this installation alone: a backup, or a console that somebody left open, commits no notification. All
// of its processes have one name, which DATABASE_URL may not change (src/config/setting-types.ts). Where Postgres does
// not note when they began, it was after their session did. Where it keeps that from this user, it may have been at any
// time: nothing is passed until that session has gone (src/infra/postgres/unfit.ts).
const oldestBeginning = statement(
  'oldest-transaction',
  `SELECT CASE WHEN bool_or(query = '<insufficient privilege>') THEN 0
               ELSE (extract(epoch FROM LEAST(clock_timestamp(), min(CASE state WHEN 'disabled' THEN backend_start ELSE xact_start END)))
                 * 1000)::float8 END AS ms,
     ${longestTimeout} AS timeout
   FROM pg_stat_activity
   WHERE datname = current_database() AND application_name = current_setting('application_name') AND pid <> pg_backend_pid()`,
);

const hidden =
  'Postgres does not show this role when transactions of sessions of another role began: see postgres-sessions of heraut doctor.';

const blindness = new RepeatedFailures(new Logger('Ledger'), {
  failed: { event: 'ledger.sessions-hidden' },
  worksAgain: { event: 'ledger.sessions-seen' },
});

/**
 * An id below which no notification can be committed any more that a look made after this does not see. An id is made
 * by the process that publishes, before the transaction that writes it begins; how long before is bounded, because the
 * ledger refuses what comes later (docs/decisions/0020). So those of open transactions, and of all to come, are at most
 * that much older than the oldest of them.
 * @param connection one of those that write notifications: it has their name; or a transaction on it
 * @param ownTimeout seconds: DATABASE_TIMEOUT of this process. The longest of all that accept counts, because each makes
 *   its ids by its own. It is read anew each time: another process says what it has before it makes the first
 * @param limitsOf of publishing, for so many milliseconds that a statement may take
 */
export async function readHorizon(
  connection: { query: Query },
  ownTimeout: number,
  limitsOf: (statementMs: number) => IdLimits,
): Promise<string> {
  const [row] = await connection.query<{ ms: number; timeout: number | null }>(oldestBeginning);
  const { ms, timeout } = row!;
  if (ms === 0) blindness.failed(new Error(hidden));
  else blindness.worked();
  return lowestIdOfAccepted(ms, limitsOf(Math.max(ownTimeout, timeout ?? 0) * 1000));
}

/** How long an id may be made before its transaction begins. */
interface IdLimits {
  turnWithinMs: number;
  beginWithinMs: number;
}

/** Below the ids of all that were accepted at that time or later, and of some that were a moment before. */
export const lowestIdOfAccepted = (acceptedMs: number, { turnWithinMs, beginWithinMs }: IdLimits): string =>
  lowestIdAt(Math.max(0, Math.floor(acceptedMs - turnWithinMs - beginWithinMs - slackMs)));
