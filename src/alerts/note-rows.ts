import type { Query } from '../infra/postgres/postgres.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';
import type { NoteChannel, NoteToSend, Recipient } from './note.js';

/** After so long nobody waits for it any more: what is still open is told of anew. */
export const giveUpAfterMs = 24 * 3_600_000;
/** Longer than a try to send takes. A process that dies leaves the note to the others when this is over. */
export const leaseMs = 120_000;
/** After a try whose recipient was refused for good: a server is seldom of another opinion soon. No pause is longer. */
export const refusedMs = 3_600_000;

const written = rowsOf<NoteToSend>('written', {
  id: ['uuid', ({ id }) => id],
  channel: ['text', ({ channel }) => channel],
  recipient: ['text', ({ address }) => address],
  content: ['text', ({ content }) => JSON.stringify(content)],
});

const writeItems = statement(
  'alert-notes-write',
  `INSERT INTO alert_note (id, channel, recipient, content)
   SELECT id, channel, recipient, content::jsonb FROM ${written.from}`,
);

export async function insertNotes(query: Query, notes: readonly NoteToSend[]): Promise<void> {
  if (notes.length > 0) await query(writeItems, written.bind(notes));
}

/**
 * Each is given to one process: the others skip what it has locked, and then see its lease. A time that lies further
 * ahead than any that is planned is past: Postgres' clock was set back.
 */
const claimNote = statement(
  'alert-note-claim',
  `WITH due AS MATERIALIZED (
     SELECT id FROM alert_note
     WHERE (next_at <= now() OR next_at > now() + interval '${refusedMs + leaseMs} ms') AND channel = $channel
     ORDER BY next_at LIMIT 1 FOR UPDATE SKIP LOCKED
   )
   UPDATE alert_note n SET attempts = n.attempts + 1, next_at = now() + $lease_ms * interval '1 ms'
   FROM due WHERE n.id = due.id
   RETURNING n.id, n.channel, n.recipient AS address, n.content, n.attempts,
     (extract(epoch FROM now() - n.created_at) * 1000)::float8 AS "ageMs"`,
);

export interface ClaimedNote extends NoteToSend {
  /** With the one to be made now. */
  attempts: number;
  /** Since it was written, in milliseconds. */
  ageMs: number;
}

export async function claimDue(query: Query, channel: NoteChannel): Promise<ClaimedNote | undefined> {
  const [note] = await query<ClaimedNote>(claimNote, { lease_ms: leaseMs, channel });
  return note;
}

/** Without regard to what others do with it: it was sent. */
export const endSent = statement(
  'alert-note-sent',
  'UPDATE alert_note SET sent_at = now(), next_at = NULL, given_up_at = NULL, last_error = NULL WHERE id = $id',
);

/** Unless its lease ended and another process tries it meanwhile. */
export const endFailed = statement(
  'alert-note-failed',
  `UPDATE alert_note SET
     next_at = now() + $delay_ms::float8 * interval '1 ms',
     given_up_at = CASE WHEN $delay_ms::float8 IS NULL THEN now() END,
     last_error = $error
   WHERE id = $id AND attempts = $attempts AND sent_at IS NULL`,
);

/** Those that were never tried, or not any more: the settings of their channel are gone, or it fails all the time. */
export const giveUpOld = statement(
  'alert-notes-give-up',
  `UPDATE alert_note SET next_at = NULL, given_up_at = now(), last_error = coalesce(last_error, 'it was not tried')
   WHERE id IN (
     SELECT id FROM alert_note WHERE next_at <= now() AND created_at < now() - ($after_ms + 2 * $lease_ms) * interval '1 ms'
     ORDER BY next_at LIMIT 1000
   ) RETURNING channel`,
);

export const forgetNotes = statement(
  'alert-notes-forget',
  `DELETE FROM alert_note WHERE id IN (
     SELECT id FROM alert_note WHERE created_at < now() - $days * interval '1 day' AND next_at IS NULL
     ORDER BY created_at LIMIT 1000
   )`,
);

/**
 * Those of operators. The address of an owner may be wrong, or be meant to do harm: that is no trouble of this
 * installation. By the index `alert_note_given_up`.
 */
const isOfOperator = "content ->> 'audience' = 'operator'";

/** Notes that failed and are not sent yet; those given up within a day; how long ago the rules were evaluated. */
export const findTrouble = statement(
  'alert-notes-trouble',
  `SELECT
     EXISTS (SELECT FROM alert_note WHERE next_at IS NOT NULL AND last_error IS NOT NULL AND ${isOfOperator}) AS is_late,
     EXISTS (SELECT FROM alert_note WHERE given_up_at > now() - interval '1 day' AND ${isOfOperator}) AS is_given_up,
     (SELECT extract(epoch FROM now() - ended_at)::float8 FROM alert_round) AS round_seconds`,
);

const recipients = rowsOf<Recipient>('told', {
  channel: ['text', ({ channel }) => channel],
  recipient: ['text', ({ address }) => address],
});

/**
 * Of former settings. A process that has those still is given the time of a lease to send them, and no two whose
 * settings differ take each other's notes back more often than that.
 */
const dropItems = statement(
  'alert-notes-drop',
  `DELETE FROM alert_note WHERE id IN (
     SELECT id FROM alert_note note
     WHERE (next_at IS NOT NULL OR given_up_at IS NOT NULL) AND created_at < now() - $lease_ms * interval '1 ms'
       AND ${isOfOperator} AND NOT EXISTS (
         SELECT FROM ${recipients.from} WHERE told.channel = note.channel AND told.recipient = note.recipient)
     LIMIT 1000
   ) RETURNING content`,
);

/** Alerts that are open, and of which no operator has a note or will get one, are as if nobody had been told. */
const untellItems = statement(
  'alerts-untell',
  `UPDATE alert SET is_noted = false, noted_at = NULL
   WHERE resolved_at IS NULL AND is_noted AND id = ANY ($ids::bigint[]) AND NOT EXISTS (
     SELECT FROM alert_note CROSS JOIN jsonb_array_elements(content -> 'news') AS news
     WHERE given_up_at IS NULL AND ${isOfOperator} AND news ->> 'alertId' = alert.id::text
   )`,
);

/** Drops unsent notes to operators whom the settings do not name any more: others are told in their place. */
export async function dropForgotten(query: Query, operators: readonly Recipient[]): Promise<void> {
  const dropped = await query<Pick<NoteToSend, 'content'>>(dropItems, {
    ...recipients.bind(operators),
    lease_ms: leaseMs,
  });
  const ids = [...new Set(dropped.flatMap(({ content }) => content.news.map(({ alertId }) => alertId)))];
  if (ids.length > 0) await query(untellItems, { ids });
}
