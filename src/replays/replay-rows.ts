import type { Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import type { Selection } from '../deliveries/selection.js';
import type { DeliveryState } from '../ledger/delivery.js';
import type { Replay, ReplayKind, ReplayState, Skipped, StopReason } from './replay.js';

const columns = `id, kind, selection, states, only_missed, rate_per_second, start_at, stop_at, note, state, stopped_because,
  counted, is_count_whole, after_notification, after_subscription, before_id, found, done, skipped, credit,
  created_at, created_by, started_at, ended_at`;

export interface ReplayRow {
  id: string;
  kind: ReplayKind;
  selection: Selection;
  states: DeliveryState[];
  only_missed: boolean;
  rate_per_second: number | null;
  start_at: Date | null;
  stop_at: Date | null;
  note: string | null;
  state: ReplayState;
  stopped_because: StopReason | null;
  counted: number;
  is_count_whole: boolean;
  after_notification: string;
  after_subscription: string;
  before_id: string;
  found: number;
  done: number;
  skipped: Skipped;
  credit: number;
  created_at: Date;
  created_by: string | null;
  started_at: Date | null;
  ended_at: Date | null;
}

export const replayOf = (row: ReplayRow): Replay => ({
  id: row.id,
  kind: row.kind,
  selection: row.selection,
  states: row.states,
  onlyMissed: row.only_missed,
  ratePerSecond: row.rate_per_second,
  startAt: row.start_at,
  stopAt: row.stop_at,
  note: row.note,
  state: row.state,
  stoppedBecause: row.stopped_because,
  counted: row.counted,
  isCountWhole: row.is_count_whole,
  after: { notificationId: row.after_notification, subscriptionId: row.after_subscription },
  before: row.before_id,
  found: row.found,
  done: row.done,
  skipped: row.skipped,
  createdAt: row.created_at,
  createdBy: row.created_by,
  startedAt: row.started_at,
  endedAt: row.ended_at,
});

export const insertReplay = statement(
  'insert-replay',
  `INSERT INTO replay (id, kind, selection, states, only_missed, rate_per_second, start_at, stop_at, note, state, counted,
     is_count_whole, after_notification, after_subscription, before_id, next_step_at, created_by)
   VALUES ($id, $kind, $selection, $states, $only_missed, $rate, $start_at, $stop_at, $note, 'scheduled', $counted,
     $is_count_whole, $after_notification, $after_subscription, $before, GREATEST(now(), $start_at::timestamptz), $created_by)
   RETURNING ${columns}`,
);

export const findReplay = statement('find-replay', `SELECT ${columns} FROM replay WHERE id = $id`);

export const lockReplay = statement('lock-replay', `SELECT ${columns} FROM replay WHERE id = $id FOR UPDATE`);

/** Newest first. They are few: a dispatcher removes those that ended long ago. */
export const listReplays = statement(
  'list-replays',
  `SELECT ${columns} FROM replay
   WHERE ($before::uuid IS NULL OR id < $before) AND ($state::text IS NULL OR state = $state)
     AND ($kind::text IS NULL OR kind = $kind)
   ORDER BY id DESC LIMIT $limit`,
);

/** One that is paused still ends when its time is over. */
export const pauseReplay = statement(
  'pause-replay',
  `UPDATE replay SET state = 'paused', next_step_at = stop_at WHERE id = $id RETURNING ${columns}`,
);

export const resumeReplay = statement(
  'resume-replay',
  `UPDATE replay SET state = CASE WHEN started_at IS NULL THEN 'scheduled' ELSE 'running' END, credit = 0, credited_at = now(),
     next_step_at = CASE WHEN started_at IS NULL THEN GREATEST(now(), start_at) ELSE now() END
   WHERE id = $id RETURNING ${columns}`,
);

export const endReplay = statement(
  'end-replay',
  `UPDATE replay SET state = $state, stopped_because = $because, ended_at = now(), next_step_at = NULL
   WHERE id = $id RETURNING ${columns}`,
);

export const startReplay = statement(
  'start-replay',
  `UPDATE replay SET state = 'running', started_at = now(), credit = 0, credited_at = now(), next_step_at = now()
   WHERE id = $id RETURNING ${columns}`,
);

/** Whether a step is due, and the version of the catalogue that it must be made with, at least. */
export const findStepDue = statement(
  'replay-step-due',
  `SELECT (SELECT version FROM catalogue) AS version FROM replay WHERE next_step_at <= now() LIMIT 1`,
);

/** @returns undefined: none is due */
export async function stepDue(query: Query): Promise<number | undefined> {
  const [row] = await query<{ version: string }>(findStepDue);
  return row && Number(row.version);
}

/** The lock keeps every other dispatcher from the same step, until the transaction has ended, or its process has. */
export const claimStep = statement(
  'claim-replay-step',
  `SELECT ${columns}, GREATEST(0, extract(epoch FROM now() - credited_at))::float8 AS seconds, coalesce(stop_at <= now(), false) AS is_over
   FROM replay WHERE next_step_at <= now() ORDER BY next_step_at LIMIT 1 FOR UPDATE SKIP LOCKED`,
);

export interface ClaimedRow extends ReplayRow {
  /** Since its credit was reckoned. */
  seconds: number;
  /** The time at which it is to stop has come. */
  is_over: boolean;
}

export const saveStep = statement(
  'save-replay-step',
  `UPDATE replay SET after_notification = $after_notification, after_subscription = $after_subscription,
     found = found + $found, done = done + $done, skipped = $skipped, done_between = done_between + $done,
     first_done = coalesce(first_done, $first_done), last_done = coalesce($last_done, last_done),
     credit = $credit, credited_at = now(), next_step_at = now() + $next_ms * interval '1 ms'
   WHERE id = $id RETURNING ${columns}`,
);

/**
 * A step failed; nothing of it happened. Others are not kept waiting by its repetition. One that was paused since has
 * no step due.
 */
export const postponeReplay = statement(
  'postpone-replay',
  `UPDATE replay SET next_step_at = now() + $next_ms * interval '1 ms' WHERE id = $id AND next_step_at <= now()`,
);

/**
 * No step is planned so far ahead, but for the first one of a replay that is to begin at a time: Postgres' clock was
 * set back, and nothing would be done until it is where it was. One whose step is being made gets a new time from that.
 */
export const bringForward = statement(
  'bring-replays-forward',
  `UPDATE replay SET next_step_at = now() WHERE id = ANY (ARRAY(
     SELECT id FROM replay
     WHERE next_step_at > now() + interval '1 minute' AND (state = 'running' OR state = 'scheduled' AND start_at IS NULL)
     FOR UPDATE SKIP LOCKED
   ))`,
);

export const sweepItems = statement(
  'sweep-replays',
  `DELETE FROM replay WHERE id IN (
     SELECT id FROM replay WHERE ended_at < now() - $days * interval '1 day' ORDER BY ended_at LIMIT $limit
   )`,
);
