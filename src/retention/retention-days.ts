import { statement } from '../infra/postgres/statement.js';

/*
 * The work of retention on a day, done and under way: the table `retention_day`. Dates travel as text, which no driver
 * moves to another time zone.
 */

/** The stage of each day of the ledger. */
export const findDays = statement(
  'retention-days',
  `SELECT day::text AS day, erased_channels, walk_channels FROM retention_day WHERE day >= $from::date`,
);

export interface DayRow {
  day: string;
  erased_channels: string[];
  walk_channels: string[] | null;
}

/**
 * Begins a walk, unless one is under way, or another process has walked through the day for these channels just now.
 * One that has nothing behind it, and waits for its end (`walkedChannels`, `walkedTo`), is begun anew for its channels
 * too, so that one end is that of both; nulls: none was found there. It must still be as it was found: another process
 * may have begun one meanwhile.
 */
export const beginWalk = statement(
  'begin-body-walk',
  `INSERT INTO retention_day (day, walk_channels, walk_reached) VALUES ($day::date, $channels, $reached)
   ON CONFLICT (day) DO UPDATE SET walk_reached = EXCLUDED.walk_reached,
     walk_channels = ARRAY(SELECT DISTINCT c FROM unnest(retention_day.walk_channels || EXCLUDED.walk_channels) AS c ORDER BY c)
   WHERE CASE WHEN retention_day.walk_channels IS NULL
     THEN NOT retention_day.erased_channels @> EXCLUDED.walk_channels
     ELSE retention_day.walk_channels = $walkedChannels::text[] AND retention_day.walk_reached = $walkedTo::uuid
       AND NOT retention_day.walk_channels @> EXCLUDED.walk_channels
   END`,
);

/** How far a walk through a day has come. */
export interface Walk {
  channels: string[];
  reached: string;
}

/** For the length of a transaction: another process that walks the same day waits for its own next look. */
export const lockWalk = statement(
  'lock-body-walk',
  `SELECT walk_channels AS channels, walk_reached AS reached FROM retention_day
   WHERE day = $day::date AND walk_channels IS NOT NULL FOR UPDATE SKIP LOCKED`,
);

export const noteWalked = statement(
  'note-body-walk',
  `UPDATE retention_day SET walk_reached = $reached, bodies_erased = bodies_erased + $bodies,
     body_bytes = body_bytes + $bytes, bodies_kept = bodies_kept + $kept
   WHERE day = $day::date`,
);

/**
 * Of the walk that is under way, and of what was walked through: once these channels are due again, the day is walked
 * through for them from its beginning. A walk that has no channel left is ended by whoever comes next, with the vacuum
 * after what it erased.
 */
export const leaveOut = statement(
  'leave-out-of-body-walk',
  `UPDATE retention_day SET
     erased_channels = ARRAY(SELECT c FROM unnest(erased_channels) AS c WHERE c <> ALL ($channels::text[]) ORDER BY c),
     walk_channels = CASE WHEN walk_channels IS NOT NULL
       THEN ARRAY(SELECT c FROM unnest(walk_channels) AS c WHERE c <> ALL ($channels::text[]) ORDER BY c) END
   WHERE day = $day::date AND (erased_channels && $channels::text[] OR walk_channels && $channels::text[])`,
);

/**
 * These channels have bodies that the walk through the day should have erased: a table was restored by hand. Not where
 * they are known to be kept, and are erased without a walk.
 */
export const walkAgain = statement(
  'walk-again',
  `UPDATE retention_day SET
     erased_channels = ARRAY(SELECT c FROM unnest(erased_channels) AS c WHERE c <> ALL ($channels::text[]) ORDER BY c)
   WHERE day = $day::date AND erased_channels && $channels::text[]
     AND NOT EXISTS (SELECT FROM kept_body WHERE notification_id >= $from AND notification_id < $to)`,
);

/**
 * Whether anybody may still see what the last step erased: a vacuum returns, and leaves it where it is. The last step
 * is the last transaction that wrote the row of the day; one that came after it, to export the day for example, only
 * has others wait longer.
 *
 * A VACUUM keeps nothing from another one, although it has an `xmin` like everybody else; where tables change much,
 * autovacuum always makes one, and no walk would end. Its helpers are known by whom they help. An ANALYZE does keep
 * what it may see, autovacuum's too, for the seconds that it takes. A standby without a slot keeps what its queries see
 * by the `xmin` of its sender. That one is in no database; its `backend_type` is not shown to all roles.
 */
export const findOlderSnapshot = statement(
  'older-snapshot',
  `WITH held AS (
     SELECT unnest(ARRAY[backend_xmin, backend_xid]) AS since FROM pg_stat_activity
     WHERE pid <> pg_backend_pid() AND (datname = current_database() OR datid IS NULL)
       AND COALESCE(leader_pid, pid) NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
     UNION ALL SELECT transaction FROM pg_prepared_xacts WHERE database = current_database()
     UNION ALL SELECT xmin FROM pg_replication_slots
   )
   SELECT EXISTS (
     SELECT FROM held JOIN retention_day walked ON age(held.since) >= age(walked.xmin) WHERE walked.day = $day::date
   ) AS yes`,
);

/** That walk, and no other that has begun since. One that no channel was left of has not come to the end of the day. */
export const endWalk = statement(
  'end-body-walk',
  `UPDATE retention_day SET walk_channels = NULL, walk_reached = NULL,
     bodies_erased_at = CASE WHEN walk_channels = '{}' THEN bodies_erased_at ELSE now() END,
     erased_channels = ARRAY(SELECT DISTINCT c FROM unnest(erased_channels || walk_channels) AS c ORDER BY c)
   WHERE day = $day::date AND walk_channels = $channels::text[] AND walk_reached = $reached
   RETURNING bodies_erased::float8 AS bodies, body_bytes::float8 AS bytes, bodies_kept::float8 AS kept`,
);

/** Not that of a day that was dropped since, and is here again: its file is the archive of that one. */
export const findExport = statement(
  'find-export',
  `SELECT exported_file AS file, exported_bytes::float8 AS bytes FROM retention_day
   WHERE day = $day::date AND exported_file IS NOT NULL AND dropped_at IS NULL`,
);

/** A day that is exported is here, also one that was dropped before. */
export const noteExportFile = statement(
  'note-export-file',
  `INSERT INTO retention_day (day, exported_file, exported_bytes) VALUES ($day::date, $file, $bytes)
   ON CONFLICT (day) DO UPDATE SET exported_file = EXCLUDED.exported_file, exported_bytes = EXCLUDED.exported_bytes,
     dropped_at = NULL`,
);

export const noteExported = statement(
  'note-exported',
  `INSERT INTO retention_day (day, exported_at, exported_file, exported_rows, exported_bytes)
   VALUES ($day::date, now(), $file, $rows, $bytes)
   ON CONFLICT (day) DO UPDATE SET exported_at = EXCLUDED.exported_at, exported_file = EXCLUDED.exported_file,
     exported_rows = EXCLUDED.exported_rows, exported_bytes = EXCLUDED.exported_bytes,
     export_failed_at = NULL, export_failure = NULL`,
);

export const noteExportFailed = statement(
  'note-export-failed',
  `INSERT INTO retention_day (day, export_failed_at, export_failure) VALUES ($day::date, now(), $failure)
   ON CONFLICT (day) DO UPDATE SET export_failed_at = EXCLUDED.export_failed_at, export_failure = EXCLUDED.export_failure`,
);

export const noteKept = statement(
  'note-day-kept',
  `INSERT INTO retention_day (day, kept_at) VALUES ($day::date, now())
   ON CONFLICT (day) DO UPDATE SET kept_at = EXCLUDED.kept_at`,
);

export const noteDropped = statement(
  'note-day-dropped',
  `INSERT INTO retention_day (day, dropped_at, notifications, deliveries, attempts, bytes)
   VALUES ($day::date, now(), $notifications, $deliveries, $attempts, $bytes)
   ON CONFLICT (day) DO UPDATE SET dropped_at = EXCLUDED.dropped_at, notifications = EXCLUDED.notifications,
     deliveries = EXCLUDED.deliveries, attempts = EXCLUDED.attempts, bytes = EXCLUDED.bytes,
     walk_channels = NULL, walk_reached = NULL, bodies_kept = 0, export_failed_at = NULL, export_failure = NULL`,
);

/** The row of a day is kept for a year after it was dropped. */
export const forgetOldDays = statement(
  'forget-retention-days',
  `DELETE FROM retention_day WHERE dropped_at < now() - interval '1 year'`,
);

export const forgetKeptOf = statement(
  'forget-kept-bodies',
  'DELETE FROM kept_body WHERE notification_id >= $from AND notification_id < $to',
);
