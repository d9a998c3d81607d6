import { statement, type Statement, type Values } from '../infra/postgres/statement.js';

/** Where a list of entries goes on: the one that was listed last. */
export interface EntryKey {
  /** ISO 8601, to the microsecond. */
  at: string;
  nr: string;
}

export interface EntryFilter {
  client?: string;
  action?: string;
  subject?: string;
  /** ISO 8601. */
  from?: string;
  /** ISO 8601; an entry of that moment is not among them. */
  to?: string;
  /** Only the entries after this one in the list; the list runs from the newest entry to the oldest. */
  after?: EntryKey;
}

/** Of fields before and after in one page; an entry that has more is a page by itself. */
export const mostBytes = 8 * 1024 * 1024;

/** Each has an index in which the entries are in the order of the list. The first one of a filter finds the fewest. */
const conditions = {
  subject: 'left(subject, 200) = left($subject, 200) AND subject = $subject',
  client: 'client = $client',
  action: 'action = $action',
};
const names = ['subject', 'client', 'action'] as const;

const columns = `(extract(epoch FROM at) * 1000000)::bigint AS at_us, nr, at, client, via, address, request_id, action,
  subject, before, after, changed_secrets`;

/**
 * Whether entries that the index of one condition finds still have to be compared with another one. There may be any
 * number of them, so a limited range of the list is searched.
 */
export const needsRange = (filter: EntryFilter): boolean =>
  names.filter((name) => filter[name] !== undefined).length > 1;

/** The last entry of the range to search, if the list is longer than that. */
export function rangeEnd(filter: EntryFilter, rows: number): [Statement, Values] {
  const first = names.filter((name) => filter[name] !== undefined).slice(0, 1);
  const text = `SELECT (extract(epoch FROM at) * 1000000)::bigint AS at_us, nr FROM audit_entry
    ${where(filter, first)} ORDER BY at DESC, nr DESC OFFSET ${rows - 1} LIMIT 1`;
  return [statement('audit-range-end', text), valuesOf(filter)];
}

/**
 * The entries that fit in a page, and in each row how many were found, of which one may be beyond the limit. Large
 * values are read of these entries only. Where an entry of an older version does not say how long it is, it is read to
 * be measured, unless even what is stored of those before it, compressed, fills a page.
 * @param end where the search stops; not given: at the end of the list
 */
export function page(filter: EntryFilter, limit: number, end?: EntryKey): [Statement, Values] {
  const inRange = end && ['at >= $end_at::timestamptz AND (at, nr) >= ($end_at::timestamptz, $end_nr::bigint)'];
  const stored = 'coalesce(pg_column_size(before), 0) + coalesce(pg_column_size(after), 0)';
  const measured = 'coalesce(octet_length(before::text), 0) + coalesce(octet_length(after::text), 0)';
  const text = `SELECT ${columns}, found FROM (
      SELECT *, sum(CASE WHEN stored_before <= ${mostBytes} THEN coalesce(bytes, ${measured}) END) OVER list AS total
      FROM (
        SELECT *, count(*) OVER ()::int AS found, row_number() OVER list AS place,
          sum(coalesce(bytes, ${stored})) OVER list - coalesce(bytes, ${stored}) AS stored_before
        FROM (
          SELECT * FROM audit_entry ${where(filter, names, inRange)} ORDER BY at DESC, nr DESC LIMIT ${limit + 1}
        ) AS entry
        WINDOW list AS (ORDER BY at DESC, nr DESC ROWS UNBOUNDED PRECEDING)
      ) AS entry
      WINDOW list AS (ORDER BY at DESC, nr DESC ROWS UNBOUNDED PRECEDING)
    ) AS entry
    WHERE place = 1 OR place <= ${limit} AND stored_before <= ${mostBytes} AND total <= ${mostBytes}
    ORDER BY at DESC, nr DESC`;
  return [statement('audit-page', text), { ...valuesOf(filter), end_at: end?.at, end_nr: end?.nr }];
}

function where(filter: EntryFilter, of: readonly (typeof names)[number][], more: string[] = []): string {
  const all = [
    ...of.filter((name) => filter[name] !== undefined).map((name) => conditions[name]),
    ...(filter.from === undefined ? [] : ['at >= $from::timestamptz']),
    ...(filter.to === undefined ? [] : ['at < $to::timestamptz']),
    // Postgres skips partitions only by a condition on the plain column, so the condition is written in both ways.
    ...(filter.after
      ? ['at <= $after_at::timestamptz AND (at, nr) < ($after_at::timestamptz, $after_nr::bigint)']
      : []),
    ...more,
  ];
  return all.length === 0 ? '' : `WHERE ${all.join(' AND ')}`;
}

const valuesOf = ({ after, ...filter }: EntryFilter): Values => ({
  ...filter,
  after_at: after?.at,
  after_nr: after?.nr,
});
