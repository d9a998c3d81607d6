import type { Postgres } from '../infra/postgres/postgres.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';
import { toldActions, type AuditedAction } from './story.js';

/** Something that the audit log has entries of. */
export interface Subject {
  name: string;
  /** Later entries are no part of what is told; null: there are none. */
  until: Date | null;
}

/** Entries of some subjects. */
export interface FoundActions {
  /** In their order. */
  of: ReadonlyMap<string, readonly AuditedAction[]>;
  /** The subjects of which only the latest entries were looked at. */
  cut: ReadonlySet<string>;
}

interface ActionRow {
  at: Date;
  client: string | null;
  action: string;
  subject: string;
  state_before: string | null;
  is_told: boolean;
  /** There may be earlier ones. */
  is_last: boolean;
}

/** Entries of one subject that are looked at. Of most actions nothing is told: of a test of the subscription, say. */
const mostOfEach = 1000;
const mostTogether = 10_000;

export const subjectRows = rowsOf<Subject>('wanted', {
  name: ['text', ({ name }) => name],
  until: ['timestamptz', ({ until }) => until],
});

/**
 * Of each subject, the latest entries since a time, by an index of the first 200 characters: those that are told, and
 * the last one that was looked at where there may be more. `before` is read of deliveries alone: that of a subscription
 * has its filters, which may be a megabyte. `until` is in milliseconds, and `at` is finer: all of its last one is read.
 */
export const actionsOn = statement(
  'read-actions',
  `SELECT at, client, action, subject, is_told, place = $most_of_each AS is_last,
     CASE WHEN action LIKE 'delivery.%' THEN before ->> 'state' END AS state_before
   FROM (
     SELECT entry.* FROM ${subjectRows.from} CROSS JOIN LATERAL (
       SELECT *, action = ANY ($told::text[]) AS is_told, row_number() OVER (ORDER BY at DESC, nr DESC) AS place FROM (
         SELECT at, nr, client, action, subject, before FROM audit_entry
         WHERE left(subject, 200) = left(wanted.name, 200) AND subject = wanted.name
           AND at >= $since AND at < coalesce(wanted.until, 'infinity') + interval '1 millisecond'
         ORDER BY at DESC, nr DESC LIMIT $most_of_each
       ) AS latest
     ) AS entry
     WHERE is_told OR place = $most_of_each
     ORDER BY at DESC, nr DESC LIMIT $most
   ) AS entry
   ORDER BY at, nr`,
);

export async function findActions(
  postgres: Postgres,
  subjects: readonly Subject[],
  since: Date,
  { ofEach, together } = { ofEach: mostOfEach, together: mostTogether },
): Promise<FoundActions> {
  const rows = await postgres.queryAside<ActionRow>(actionsOn, {
    ...subjectRows.bind(subjects),
    told: toldActions,
    since,
    most_of_each: ofEach,
    most: together,
  });
  const of = new Map<string, AuditedAction[]>();
  const cut = new Set(rows.length < together ? [] : subjects.map(({ name }) => name));
  for (const { is_told: isTold, is_last: isLast, state_before: stateBefore, ...action } of rows) {
    if (isLast) cut.add(action.subject);
    if (!isTold) continue;
    const others = of.get(action.subject);
    if (others) others.push({ ...action, stateBefore });
    else of.set(action.subject, [{ ...action, stateBefore }]);
  }
  return { of, cut };
}
