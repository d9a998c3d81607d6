import type { Postgres } from './postgres.js';
import { statement } from './statement.js';

/** Of the log, in front of the next checkpoint. One that comes sooner has more whole pages written to the log. */
const mostMb = 64;

const isDue = statement(
  'checkpoint-due',
  `SELECT pg_current_wal_lsn() - checkpoint_lsn > ${mostMb * 1024 * 1024} AS is_due FROM pg_control_checkpoint()`,
);
const checkpoint = statement('checkpoint', 'CHECKPOINT');

/**
 * Writes what the log of the embedded database holds to its tables, and removes that log, where there is much of it.
 * PGlite has no process that does so by time or by size: without this the log would grow until the next start, and a
 * start after a crash would read all of it. It blocks the thread of this process for up to half a second.
 */
export async function checkpointEmbedded(postgres: Pick<Postgres, 'isEmbedded' | 'query'>): Promise<void> {
  if (!postgres.isEmbedded) return;
  const [log] = await postgres.query<{ is_due: boolean }>(isDue);
  if (log!.is_due) await postgres.query(checkpoint);
}
