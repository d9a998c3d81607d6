/**
 * Tables whose rows stay behind. Every other table is copied, so a new one cannot be forgotten.
 */
export const leftBehind: ReadonlySet<string> = new Set([
  // Postgres has its own: it was migrated to the same version.
  'migrations',
  // A report of a worker that is gone counts for seconds: its chunks are back in the queue.
  'lane_progress',
  // Nobody listens to live events, as nothing runs; the events are kept for minutes.
  'live_listener',
  'live_event',
  // Users sign in again. Their cookies are for the address and the secrets of before, and Postgres may have sessions
  // already, of whoever looked at it.
  'session',
  'sign_in_ticket',
]);

/**
 * Tables in which a Heraut that was started on an empty Postgres, to see whether that works, leaves rows. They are of
 * the migrations and of its own processes, measurements and alerts, and are replaced.
 */
export const replaced: ReadonlySet<string> = new Set([
  'catalogue',
  'alert_round',
  'alert',
  'alert_note',
  'process',
  'measurement',
  'queue_creation',
  'redis_outage',
]);

/** Has its own entries, of those who signed in there, which nothing deletes: the others come beside them. */
export const kept: ReadonlySet<string> = new Set(['audit_entry']);
