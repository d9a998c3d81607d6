import type { Query } from '../infra/postgres/postgres.js';
import { rowsOf, statement, type Statement, type Values } from '../infra/postgres/statement.js';
import type { Finding, StoredAlert } from './alert.js';

/** Those of an `Alert`, and of a `StoredAlert`. */
const alertColumns = `id, rule, subject, since, opened_at AS "openedAt", resolved_at AS "resolvedAt", details,
  noted_at AS "lastToldAt", is_noted AS "isTold"`;
const storedColumns = `${alertColumns}, told`;

/** By the two partial indexes of what is open and of what ended and is still to be told. */
const findCurrent = statement(
  'alerts-current',
  `SELECT ${storedColumns} FROM alert WHERE resolved_at IS NULL
   UNION ALL
   SELECT ${storedColumns} FROM alert WHERE resolved_at IS NOT NULL AND is_noted AND NOT is_end_noted`,
);

/** The alerts that are open, and those whose end nobody was told of. */
export const readCurrent = (query: Query): Promise<StoredAlert[]> => query<StoredAlert>(findCurrent);

const found = rowsOf<Finding>('found', {
  rule: ['text', ({ rule }) => rule],
  subject: ['text', ({ subject }) => subject],
  since_ms: ['float8', ({ since }) => since.getTime()],
  details: ['text', ({ details }) => JSON.stringify(details)],
});

const openItems = statement(
  'alerts-open',
  `INSERT INTO alert (rule, subject, since, details, noted_at)
   SELECT found.rule, found.subject, to_timestamp(found.since_ms / 1000), found.details::jsonb, (
     SELECT before.noted_at FROM alert before
     WHERE before.rule = found.rule AND left(before.subject, 200) = left(found.subject, 200)
       AND before.subject = found.subject
     ORDER BY before.id DESC LIMIT 1
   )
   FROM ${found.from}
   RETURNING ${storedColumns}`,
);

export async function openAlerts(query: Query, findings: readonly Finding[]): Promise<StoredAlert[]> {
  return findings.length === 0 ? [] : query<StoredAlert>(openItems, found.bind(findings));
}

const known = rowsOf<{ id: string; details: Finding['details'] }>('known', {
  id: ['text', ({ id }) => id],
  details: ['text', ({ details }) => JSON.stringify(details)],
});

/** Most rounds find nothing new, and write nothing. */
const updateItems = statement(
  'alerts-update',
  `UPDATE alert SET details = known.details::jsonb FROM ${known.from}
   WHERE alert.id = known.id::bigint AND alert.details <> known.details::jsonb`,
);

export async function updateAlerts(query: Query, changed: readonly { id: string; details: Finding['details'] }[]) {
  if (changed.length > 0) await query(updateItems, known.bind(changed));
}

const resolveItems = statement(
  'alerts-resolve',
  `UPDATE alert SET resolved_at = now(), is_end_noted = id = ANY ($untold_ids::bigint[])
   WHERE id = ANY ($ids::bigint[]) RETURNING id, resolved_at`,
);

/**
 * @param untold those among them whose end nobody is to be told of
 * @returns when, which is the same for all
 */
export async function resolveAlerts(
  query: Query,
  ids: readonly string[],
  untold: readonly string[] = [],
): Promise<Date | undefined> {
  if (ids.length === 0) return undefined;
  const [row] = await query<{ resolved_at: Date }>(resolveItems, { ids, untold_ids: untold });
  return row?.resolved_at;
}

const noted = rowsOf<{ id: string; told: readonly string[] }>('noted', {
  id: ['text', ({ id }) => id],
  told: ['text', ({ told }) => JSON.stringify(told)],
});

const noteItems = statement(
  'alerts-noted',
  `UPDATE alert SET
     is_noted = true,
     noted_at = CASE WHEN resolved_at IS NULL THEN now() ELSE noted_at END,
     is_end_noted = resolved_at IS NOT NULL,
     told = ARRAY(SELECT jsonb_array_elements_text(noted.told::jsonb))
   FROM ${noted.from} WHERE alert.id = noted.id::bigint`,
);

/** Somebody is told of them as they are now. @param alerts with the owners that are told, or were before */
export async function markTold(query: Query, alerts: readonly { id: string; told: readonly string[] }[]) {
  if (alerts.length > 0) await query(noteItems, noted.bind(alerts));
}

const forgetItems = statement(
  'alerts-forget',
  `DELETE FROM alert WHERE id IN (
     SELECT id FROM alert WHERE resolved_at < now() - $days * interval '1 day' ORDER BY resolved_at LIMIT 1000
   )`,
);

export async function forgetAlerts(query: Query, days: number): Promise<void> {
  await query(forgetItems, { days });
}

export const countItems = statement(
  'alerts-count-open',
  'SELECT rule, count(*)::int AS count FROM alert WHERE resolved_at IS NULL GROUP BY rule',
);

export interface AlertFilter {
  state?: 'open' | 'resolved';
  rule?: Finding['rule'];
  /** Of a rule: only together with one. */
  subject?: string;
  /** Only the alerts after this one in the list, which runs from the newest to the oldest. */
  after?: string;
}

/** By the primary key, by rule and id, or by rule, subject and id. Of the open ones, which are few, all are read. */
export function alertPage(filter: AlertFilter, limit: number): [Statement, Values] {
  const conditions = [
    filter.state && `resolved_at IS ${filter.state === 'open' ? '' : 'NOT '}NULL`,
    filter.rule && 'rule = $rule',
    filter.subject && 'left(subject, 200) = left($subject, 200) AND subject = $subject',
    filter.after && 'id < $after',
  ].filter((condition) => condition !== undefined);
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
  const text = `SELECT ${alertColumns} FROM alert ${where} ORDER BY id DESC LIMIT ${limit}`;
  return [statement('alerts-page', text), { ...filter }];
}
