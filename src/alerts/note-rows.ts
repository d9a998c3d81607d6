import type { Query } from '../infra/postgres/postgres.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';
import type { NoteChannel, NoteToSend, Recipient } from './note.js';

/** After so long nobody waits for it any more: what is still open is told of anew. */
export const giveUpAfterMs = 24 * 3_600_000;
/** Longer than a try to send takes. A process that dies leaves the note to the others when this is over. */
export const leaseMs = 120_000;
/** After a try whose recipient was refused for good: a server is seldom of another opinion soon. No pause is longer. */
export const refusedMs = 3_600_000;

/**
 * Those of operators. The address of an owner may be wrong, or be meant to do harm: that is no trouble of this
 * installation. Indexes have this condition.
 */
const isOfOperator = "content ->> 'audience' = 'operator'";

/** The ids of the alerts that a note is about, also of those that it only counts. A version before wrote no list. */
const alertIdsOf = (content: string): string =>
  `jsonb_array_elements_text(coalesce(${content} -> 'alertIds', jsonb_path_query_array(${content}, '$.news[*].alertId')))`;

const written = rowsOf<NoteToSend>('written', {
  id: ['uuid', ({ id }) => id],
  channel: ['text', ({ channel }) => channel],
  recipient: ['text', ({ address }) => address],
  content: ['text', ({ content }) => JSON.stringify(content)],
});

/**
 * About alerts of the same subjects: that one came back is told after that the one before it was over. From the unsent
 * notes on: they are fewer than the alerts of a subject that comes and goes.
 */
const findUnsent = statement(
  'alert-notes-unsent',
  `SELECT DISTINCT channel, recipient AS address, due.id::text AS "alertId"
   FROM alert_note CROSS JOIN ${alertIdsOf('content')} AS told (alert_id) JOIN alert ON alert.id = told.alert_id::bigint
   JOIN alert due ON due.rule = alert.rule AND due.subject = alert.subject
   WHERE next_at IS NOT NULL AND due.id = ANY ($ids::bigint[])`,
);

/** @returns whether a note about the subject of that alert, one of those given, waits to be sent to the recipient */
export async function readUnsent(
  query: Query,
  ids: readonly string[],
): Promise<(recipient: Recipient, alertId: string) => boolean> {
  const rows = ids.length === 0 ? [] : await query<Recipient & { alertId: string }>(findUnsent, { ids });
  const keyOf = ({ channel, address }: Recipient, alertId: string) => `${channel} ${alertId} ${address}`;
  const unsent = new Set(rows.map((row) => keyOf(row, row.alertId)));
  return (recipient, alertId) => unsent.has(keyOf(recipient, alertId));
}

/** With those that it comes after: what they tell of the same subjects was not sent to its recipient yet. */
const writeItems = statement(
  'alert-notes-write',
  `INSERT INTO alert_note (id, channel, recipient, content, after_ids)
   SELECT id, channel, recipient, content::jsonb, ARRAY(
     SELECT DISTINCT older.id FROM alert_note older CROSS JOIN ${alertIdsOf('older.content')} AS told (alert_id)
     JOIN alert ON alert.id = told.alert_id::bigint
     WHERE older.next_at IS NOT NULL AND older.channel = written.channel AND older.recipient = written.recipient
       AND (alert.rule, alert.subject) IN (
         SELECT rule, subject FROM alert
         WHERE id IN (SELECT told.alert_id::bigint FROM ${alertIdsOf('written.content::jsonb')} AS told (alert_id)))
   )
   FROM ${written.from}
   RETURNING after_ids`,
);

/**
 * Those that wait to be tried again are due now. Not those that a process may have in hand: a lease ends sooner. By the
 * time of this moment, as the lease may have begun after this transaction.
 */
const hurry = (which: string): string =>
  `UPDATE alert_note SET next_at = now() WHERE id = ANY (ARRAY(
     SELECT id FROM alert_note WHERE ${which} AND next_at > clock_timestamp() + interval '${leaseMs} ms'
     FOR UPDATE SKIP LOCKED
   ))`;
const hurryNotes = statement('alert-notes-hurry', hurry('id = ANY ($ids::uuid[])'));

/** Those that must be sent before them are tried at once: one may tell of new trouble besides. */
export async function insertNotes(query: Query, notes: readonly NoteToSend[]): Promise<void> {
  if (notes.length === 0) return;
  const rows = await query<{ after_ids: string[] }>(writeItems, written.bind(notes));
  const ids = rows.flatMap(({ after_ids: afterIds }) => afterIds);
  if (ids.length > 0) await query(hurryNotes, { ids });
}

/**
 * Each is given to one process: the others skip what it has locked, and then see its lease. A time that lies further
 * ahead than any that is planned is past: Postgres' clock was set back. That an alert is over is not told before that
 * it began, which may wait for its next try: a program that opens an incident would find it open for ever.
 */
const claimOf = (audience: string): string =>
  `WITH due AS MATERIALIZED (
     SELECT id FROM alert_note note
     WHERE (next_at <= now() OR next_at > now() + interval '${refusedMs + leaseMs} ms') AND channel = $channel
       AND ${audience} AND NOT EXISTS (SELECT FROM alert_note WHERE id = ANY (note.after_ids) AND next_at IS NOT NULL)
     ORDER BY next_at LIMIT 1 FOR UPDATE OF note SKIP LOCKED
   )
   UPDATE alert_note n SET attempts = n.attempts + 1, next_at = now() + $lease_ms * interval '1 ms'
   FROM due WHERE n.id = due.id
   RETURNING n.id, n.channel, n.recipient AS address, n.content, n.attempts,
     (extract(epoch FROM now() - n.created_at) * 1000)::float8 AS "ageMs"`;
const claimOfOperator = statement('alert-note-claim-operator', claimOf(isOfOperator));
const claimOfAnybody = statement('alert-note-claim', claimOf('true'));

export interface ClaimedNote extends NoteToSend {
  /** With the one to be made now. */
  attempts: number;
  /** Since it was written, in milliseconds. */
  ageMs: number;
}

/** Those of operators first: thousands of owners may have to be told, by one mail after the other. */
export async function claimDue(query: Query, channel: NoteChannel): Promise<ClaimedNote | undefined> {
  const values = { lease_ms: leaseMs, channel };
  const [first] = await query<ClaimedNote>(claimOfOperator, values);
  return first ?? (await query<ClaimedNote>(claimOfAnybody, values))[0];
}

/** Without regard to what others do with it: it was sent. */
const endSent = statement(
  'alert-note-sent',
  'UPDATE alert_note SET sent_at = now(), next_at = NULL, given_up_at = NULL, last_error = NULL WHERE id = $id',
);

const hurryRecipient = statement('alert-notes-hurry-recipient', hurry('channel = $channel AND recipient = $recipient'));

/** It was sent. The others to its recipient can be sent as well, so they do not wait for their next try. */
export async function noteSent(query: Query, { id, channel, address }: Recipient & { id: string }): Promise<void> {
  await query(endSent, { id });
  await query(hurryRecipient, { channel, recipient: address });
}

const keepTest = statement(
  'alert-notes-keep-test',
  `INSERT INTO alert_note (id, channel, recipient, content, attempts, next_at, sent_at)
   VALUES ($id, $channel, $recipient, $content::jsonb, 1, NULL, now())`,
);

/** The same of a test, which shows that its recipient can be told again. */
export async function testSent(query: Query, { id, channel, address: recipient, content }: NoteToSend): Promise<void> {
  await query(keepTest, { id, channel, recipient, content: JSON.stringify(content) });
  await query(hurryRecipient, { channel, recipient });
}

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
 * Notes that failed and are not sent yet; those given up within a day, unless their recipient was sent another one
 * since, by the index `alert_note_sent`; how long ago the rules were evaluated.
 */
export const findTrouble = statement(
  'alert-notes-trouble',
  `SELECT
     EXISTS (SELECT FROM alert_note WHERE next_at IS NOT NULL AND last_error IS NOT NULL AND ${isOfOperator}) AS is_late,
     EXISTS (
       SELECT FROM alert_note note WHERE given_up_at > now() - interval '1 day' AND ${isOfOperator} AND NOT EXISTS (
         SELECT FROM alert_note WHERE channel = note.channel AND recipient = note.recipient
           AND sent_at > note.given_up_at AND ${isOfOperator})
     ) AS is_given_up,
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
   ) RETURNING ARRAY(SELECT ${alertIdsOf('content')}) AS alert_ids`,
);

/** The one of `alert`. */
const sameSubjectAs = (other: string): string =>
  `alert.rule = ${other}.rule AND left(alert.subject, 200) = left(${other}.subject, 200)
     AND alert.subject = ${other}.subject`;

/**
 * Alerts of which no operator has a note or will get one are as if nobody had been told; those that are over remain
 * told, but the ones that came after them have nothing to be quiet for.
 */
const untell = (which: string): string =>
  `UPDATE alert SET is_noted = alert.is_noted AND alert.resolved_at IS NOT NULL, noted_at = NULL
   FROM (
     SELECT rule, subject, noted_at FROM alert
     WHERE is_noted AND noted_at IS NOT NULL AND id ${which} AND NOT EXISTS (
       SELECT FROM alert_note CROSS JOIN ${alertIdsOf('content')} AS told (alert_id)
       WHERE given_up_at IS NULL AND ${isOfOperator} AND told.alert_id = alert.id::text
     )
   ) untold
   WHERE ${sameSubjectAs('untold')} AND alert.noted_at = untold.noted_at`;
const untellItems = statement('alerts-untell', untell('= ANY ($ids::bigint[])'));

/** Those of the notes that were given up since the last round; longer, as a transaction may end later than its time. */
const untellGivenUp = statement(
  'alerts-untell-given-up',
  untell(`IN (
     SELECT told.alert_id::bigint FROM alert_note CROSS JOIN ${alertIdsOf('content')} AS told (alert_id)
     WHERE given_up_at > (SELECT coalesce(ended_at, now()) FROM alert_round) - interval '10 minutes' AND ${isOfOperator}
   )`),
);

/** In 24 hours one subject is told of so often as it comes back; more would be no news. */
const mostOpenings = 5;

const beforeOpen = `(SELECT * FROM alert WHERE ${sameSubjectAs('open')} AND alert.id < open.id
     ORDER BY alert.id DESC LIMIT ${mostOpenings})`;

/**
 * Alerts that came back after operators were sent that they are over, where there are any: recipients who know only
 * of the end are told at once. So they are where no note of the end was written, because the rule was off: it was
 * switched on to be told. The last alert of which they were told counts: others may have come and gone since, before
 * that note was sent.
 */
const untellBack = statement(
  'alerts-untell-back',
  `UPDATE alert SET noted_at = NULL WHERE id IN (
     SELECT open.id FROM alert open CROSS JOIN LATERAL (
       SELECT * FROM ${beforeOpen} few WHERE is_noted ORDER BY id DESC LIMIT 1
     ) last
     WHERE open.resolved_at IS NULL AND NOT open.is_noted AND open.noted_at IS NOT NULL AND last.is_end_noted
       AND (SELECT count(*) FROM ${beforeOpen} few
            WHERE few.opened_at > open.opened_at - interval '24 hours') < ${mostOpenings}
       AND (
         SELECT coalesce(bool_or(sent_at IS NOT NULL AND (NOT $has_operators::boolean OR ${isOfOperator})), true)
         FROM alert_note CROSS JOIN ${alertIdsOf('content')} AS told (alert_id)
         WHERE created_at >= last.resolved_at AND told.alert_id = last.id::text
       )
   )`,
);

/**
 * Others are told in the place of operators who were not: unsent notes to those whom the settings do not name any more
 * are dropped, and alerts of which all notes were given up are told of anew. So are those that came back after a note
 * that they are over.
 */
export async function tellAnew(query: Query, operators: readonly Recipient[]): Promise<void> {
  const dropped = await query<{ alert_ids: string[] }>(dropItems, {
    ...recipients.bind(operators),
    lease_ms: leaseMs,
  });
  const ids = [...new Set(dropped.flatMap(({ alert_ids: alertIds }) => alertIds))];
  if (ids.length > 0) await query(untellItems, { ids });
  if (operators.length > 0) await query(untellGivenUp);
  await query(untellBack, { has_operators: operators.length > 0 });
}
