import type { Postgres } from '../infra/postgres/postgres.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';
import type { Lane } from './delivery-queue.js';

/** How far one process, or all processes together, are with a lane. Milliseconds since 1970, by Postgres' clock. */
export interface LaneReport {
  lane: Lane;
  /** When the newest chunk that was taken had been handed out; 0: it is not known. */
  newestTaken: number;
  /** The same of the oldest chunk that is not acknowledged yet; null when there is none. */
  oldestUnacknowledged: number | null;
}

/**
 * Workers report every second. In the rest of the time the broker notices a dead worker and gives its chunks to others.
 */
const countsMs = 20_000;

const reported = rowsOf<LaneReport>('report', {
  lane: ['text', (report) => report.lane],
  newest_ms: ['float8', (report) => report.newestTaken],
  oldest_ms: ['float8', (report) => report.oldestUnacknowledged],
});

const record = statement(
  'record-progress',
  `INSERT INTO lane_progress (lane, process, newest_taken, oldest_unacknowledged, reported_at)
   SELECT lane, $process, to_timestamp(newest_ms / 1000), to_timestamp(oldest_ms / 1000), now() FROM ${reported.from}
   ON CONFLICT (lane, process) DO UPDATE SET
     newest_taken = EXCLUDED.newest_taken, oldest_unacknowledged = EXCLUDED.oldest_unacknowledged, reported_at = EXCLUDED.reported_at`,
);

/** Writes how far this process is, for the dispatchers. */
export async function recordProgress(postgres: Postgres, process: string, reports: LaneReport[]): Promise<void> {
  await postgres.query(record, { ...reported.bind(reports), process });
}

/*
 * The unacknowledged chunks of a worker go back to the queue when it dies, so its last report counts for a while; by
 * then another worker has taken them again, and reports them. A chunk that was taken before Postgres' clock was set
 * back seems to be later than all that is handed out now: it does not say that a worker has come that far. The second
 * is for clocks that agree.
 */
const read = statement(
  'read-progress',
  `SELECT lane,
     (extract(epoch FROM MAX(newest_taken) FILTER (WHERE newest_taken <= now() + interval '1 s')) * 1000)::bigint AS newest_ms,
     (extract(epoch FROM MIN(oldest_unacknowledged)) * 1000)::bigint AS oldest_ms
   FROM lane_progress WHERE reported_at > now() - $counts_ms * interval '1 ms' GROUP BY lane`,
);

/** How far all workers are with each lane that any of them has taken from. */
export async function readProgress(postgres: Postgres): Promise<LaneReport[]> {
  const rows = await postgres.query<{ lane: Lane; newest_ms: string | null; oldest_ms: string | null }>(read, {
    counts_ms: countsMs,
  });
  return rows.map((row) => ({
    lane: row.lane,
    newestTaken: Number(row.newest_ms ?? 0),
    oldestUnacknowledged: row.oldest_ms === null ? null : Number(row.oldest_ms),
  }));
}

const sweep = statement(
  'sweep-progress',
  `WITH ahead AS (DELETE FROM queue_creation WHERE created_at > now() + $counts_ms * interval '1 ms')
   DELETE FROM lane_progress
   WHERE reported_at <= now() - $counts_ms * interval '1 ms' OR reported_at > now() + $counts_ms * interval '1 ms'`,
);

/**
 * Removes the reports that count no longer, and those from before Postgres' clock was set back: by the time of these
 * the queue that is there would be taken for the former one.
 */
export async function sweepProgress(postgres: Postgres): Promise<void> {
  await postgres.query(sweep, { counts_ms: countsMs });
}

const recordCreation = statement(
  'record-queue-creation',
  `INSERT INTO queue_creation (created_at) VALUES (to_timestamp($created_ms::float8 / 1000))
   ON CONFLICT (singleton) DO UPDATE SET created_at = EXCLUDED.created_at`,
);

/** Writes, for the dispatchers, that the queue was created anew: all that was handed out before is lost. */
export async function recordQueueCreation(postgres: Postgres, createdMs: number): Promise<void> {
  await postgres.query(recordCreation, { created_ms: createdMs });
}

const readCreation = statement(
  'read-queue-creation',
  'SELECT (extract(epoch FROM created_at) * 1000)::bigint AS created_ms FROM queue_creation WHERE created_at <= now()',
);

/**
 * One that lies ahead is from before Postgres' clock was set back. All that has been handed to the new queue since
 * seems to have been handed to the former one.
 * @returns milliseconds since 1970, by Postgres' clock; undefined where no creation is known
 */
export async function readQueueCreation(postgres: Postgres): Promise<number | undefined> {
  const [row] = await postgres.query<{ created_ms: string }>(readCreation);
  return row && Number(row.created_ms);
}
