import { statement, type Statement, type Values } from '../infra/postgres/statement.js';
import type { DeliveryKey } from '../ledger/delivery.js';
import { highestId, lowestId } from '../ledger/partitions.js';
import { deliveryConditions, notificationConditions, type Conditions, type Criteria } from './criteria.js';
import { fromStateIndex, type Scope } from './routes.js';

/*
 * Statements that find deliveries, or notifications, newest first. All use the one order of the lists, so that each
 * page costs the same, however far from the start. They find keys; the rest is read by those (find-deliveries.ts).
 */

/** `notification`: those of a list of notifications, each once. */
export type Sought = 'delivery' | 'notification';

/** The part of a list that is searched. Of a list of notifications, the subscription of a key says nothing. */
export interface Part {
  /** Only what comes after this one. */
  after?: DeliveryKey;
  /** Up to this one, which is among them. */
  end?: DeliveryKey;
}

/** From one notification to another one, both among them. */
export interface Window {
  from: string;
  to: string;
}

type Ready = [Statement, Values];

/** The first and the last id that a part may have. */
export function windowOf({ notificationId, from, before }: Criteria, { after, end }: Part): Window {
  return {
    from: [from, notificationId, end?.notificationId].reduce<string>(
      (one, other) => (other && other > one ? other : one),
      lowestId,
    ),
    to: [before, notificationId, after?.notificationId].reduce<string>(
      (one, other) => (other && other < one ? other : one),
      highestId,
    ),
  };
}

/** Postgres skips partitions only by conditions on the plain column, so they are written in both ways. */
function deliveryBounds(criteria: Criteria, part: Part): Conditions {
  const { from, to } = windowOf(criteria, part);
  const texts = ['notification_id >= $from_id', 'notification_id <= $to_id'];
  const values: Record<string, unknown> = { from_id: from, to_id: to };
  if (part.after) {
    texts.push('(notification_id, subscription_id) < ($after_id, $after_subscription)');
    values['after_id'] = part.after.notificationId;
    values['after_subscription'] = part.after.subscriptionId;
  }
  if (part.end) {
    texts.push('(notification_id, subscription_id) >= ($end_id, $end_subscription)');
    values['end_id'] = part.end.notificationId;
    values['end_subscription'] = part.end.subscriptionId;
  }
  return { texts, values };
}

/** The most that one statement may look at. */
export interface RangeSize {
  rows: number;
  /** Of the bodies of these rows; the last one may go beyond it. Undefined: none is read. */
  bytes: number | undefined;
}

/** Of a body Postgres knows the length without reading it. */
const bodyBytes = '(SELECT octet_length(n.body) FROM notification n WHERE n.id = notification_id LIMIT 1)';

/**
 * The last delivery of the range to search, if the list is longer than that. Reads one index, of which the scope is a
 * part.
 */
export function rangeEnd(scope: Scope, criteria: Criteria, part: Part, size: RangeSize): Ready {
  const [bounds, own] = [deliveryBounds(criteria, part), deliveryConditions(scope)];
  const key = ['notification_id', 'subscription_id'];
  const text = endOf(key, `FROM delivery ${where(bounds.texts, own.texts)}`, size, bodyBytes);
  return [statement('search-range-end', text), { ...bounds.values, ...own.values }];
}

/** The row with which a list, newest first, has so many rows, or bodies of so many bytes. */
function endOf(key: readonly string[], from: string, { rows, bytes }: RangeSize, bytesOf: string): string {
  const columns = key.join(', ');
  const order = `ORDER BY ${key.map((column) => `${column} DESC`).join(', ')}`;
  if (bytes === undefined) return `SELECT ${columns} ${from} ${order} OFFSET ${rows - 1} LIMIT 1`;
  return `SELECT ${columns} FROM (
      SELECT ${columns}, row_number() OVER list AS nr, sum(own) OVER list AS bytes
      FROM (SELECT ${columns}, ${bytesOf} AS own ${from} ${order} LIMIT ${rows}) next
      WINDOW list AS (${order} ROWS UNBOUNDED PRECEDING)
    ) sized WHERE nr = ${rows} OR bytes >= ${bytes} ${order} LIMIT 1`;
}

/**
 * @param few not undefined: the rows of the state's index are at most that many, and are all read and sorted
 */
export function byDelivery(sought: Sought, criteria: Criteria, part: Part, limit: number, few?: number): Ready {
  const [bounds, own, notification] = [
    deliveryBounds(criteria, part),
    deliveryConditions(criteria),
    notificationConditions(criteria),
  ];
  // A scalar query, looked up for each row: as a join it might be made by reading all notifications.
  const fits = `(SELECT ${notification.texts.join(' AND ')} FROM notification n WHERE n.id = notification_id LIMIT 1)`;
  const conditions = where(bounds.texts, own.texts, notification.texts.length > 0 ? [fits] : []);
  const from = few === undefined ? 'delivery' : `${fromStateIndex(criteria.state!, '*', few)} few`;
  const text =
    sought === 'delivery'
      ? `SELECT notification_id, subscription_id FROM ${from} ${conditions}
         ORDER BY notification_id DESC, subscription_id DESC LIMIT ${limit}`
      : `SELECT DISTINCT notification_id, '${lowestId}'::uuid AS subscription_id FROM ${from} ${conditions}
         ORDER BY notification_id DESC LIMIT ${limit}`;
  return [statement('search-deliveries', text), { ...bounds.values, ...own.values, ...notification.values }];
}

/**
 * Whether the index of that state has more than so many rows, or those of them that the part may have as many bytes of
 * bodies: these are looked up only where the rows are few.
 */
export function exceeds(criteria: Criteria, part: Part, { rows, bytes }: RangeSize): Ready {
  const few = fromStateIndex(criteria.state!, bytes === undefined ? '' : '*', rows + 1);
  if (bytes === undefined) return [statement('search-exceeds', `SELECT count(*) > ${rows} AS yes FROM ${few} few`), {}];
  const [bounds, own] = [deliveryBounds(criteria, part), deliveryConditions(criteria)];
  const text = `WITH few AS MATERIALIZED (SELECT * FROM ${few} few)
    SELECT (SELECT count(*) FROM few) > ${rows}
      OR (SELECT coalesce(sum(${bodyBytes}), 0) FROM few ${where(bounds.texts, own.texts)}) >= ${bytes} AS yes`;
  return [statement('search-exceeds', text), { ...bounds.values, ...own.values }];
}

/** Each window is read by the primary keys. */
export function inWindows(
  sought: Sought,
  criteria: Criteria,
  part: Part,
  windows: readonly Window[],
  limit: number,
): Ready {
  const { text: inner, values } = (sought === 'delivery' ? deliveriesIn : notificationsIn)(criteria, part);
  const text = `SELECT found.notification_id, found.subscription_id
    FROM unnest($window_from::uuid[], $window_to::uuid[]) AS w (from_id, to_id) CROSS JOIN LATERAL (${inner} LIMIT ${limit}) found
    ORDER BY found.notification_id DESC, found.subscription_id DESC LIMIT ${limit}`;
  const [window_from, window_to] = [windows.map(({ from }) => from), windows.map(({ to }) => to)];
  return [statement('search-windows', text), { ...values, window_from, window_to }];
}

const inWindow = (column: string): string => `${column} >= w.from_id AND ${column} <= w.to_id`;

function deliveriesIn(criteria: Criteria, part: Part): { text: string; values: Values } {
  const [bounds, own, notification] = [
    deliveryBounds(criteria, part),
    deliveryConditions(criteria),
    notificationConditions(criteria),
  ];
  const on = ['n.id = notification_id', inWindow('n.id'), ...notification.texts].join(' AND ');
  const text = `SELECT notification_id, subscription_id FROM delivery ${notification.texts.length > 0 ? `JOIN notification n ON ${on}` : ''}
    ${where([inWindow('notification_id')], bounds.texts, own.texts)} ORDER BY notification_id DESC, subscription_id DESC`;
  return { text, values: { ...bounds.values, ...own.values, ...notification.values } };
}

function notificationsIn(criteria: Criteria, { after }: Part): { text: string; values: Values } {
  const { from, to } = windowOf(criteria, { after });
  const [own, notification] = [deliveryConditions(criteria), notificationConditions(criteria)];
  const delivery = where(['notification_id = n.id', inWindow('notification_id')], own.texts);
  const conditions = where(
    [inWindow('n.id'), 'n.id >= $from_id', 'n.id <= $to_id', ...(after ? ['n.id < $after_id'] : [])],
    notification.texts,
    own.texts.length > 0 ? [`EXISTS (SELECT FROM delivery ${delivery})`] : [],
  );
  const text = `SELECT n.id AS notification_id, '${lowestId}'::uuid AS subscription_id FROM notification n ${conditions} ORDER BY n.id DESC`;
  const bounds = { from_id: from, to_id: to, ...(after && { after_id: after.notificationId }) };
  return { text, values: { ...bounds, ...own.values, ...notification.values } };
}

/** The oldest notification of the part of the window to search, if the window has more. */
export function notificationRangeEnd({ from, to }: Window, size: RangeSize): Ready {
  const text = endOf(['id'], 'FROM notification WHERE id >= $from_id AND id <= $to_id', size, 'octet_length(body)');
  return [statement('search-notification-range-end', text), { from_id: from, to_id: to }];
}

/**
 * The ids of the subscriptions that an application has now, and of those that it had and of which the ledger may have a
 * delivery: deleted rows stay for ever, and would in the end be more than a digest is asked for.
 * @param oldestMs milliseconds since 1970, when the oldest day of the ledger began
 */
export const ownedBy = (clientId: string, oldestMs: number, limit: number): Ready => [
  statement(
    'search-owned',
    `SELECT id FROM subscription WHERE owner_client_id = $owner
       AND coalesce(deleted_at, 'infinity') >= to_timestamp($oldest_ms::float8 / 1000) LIMIT ${limit}`,
  ),
  { owner: clientId, oldest_ms: oldestMs },
];

/**
 * Between which notifications a replay sent, cancelled or closed deliveries, null: none; no row: that is not known, as
 * a process of the version before made some of its steps, or it was forgotten.
 */
export const doneBy = (replayId: string): Ready => [
  statement(
    'search-done-by-replay',
    'SELECT first_done AS from, last_done AS to FROM replay WHERE id = $id AND done_between = done',
  ),
  { id: replayId },
];

/** Of all digests, the first and the last notification; no row: there is none. */
export const digested = statement(
  'search-digested',
  `SELECT first.from_id AS from, last.to_id AS to
   FROM (SELECT from_id FROM digest ORDER BY from_id LIMIT 1) first, (SELECT to_id FROM digest ORDER BY from_id DESC LIMIT 1) last`,
);

/**
 * Where the search of digests stops, if the window has more than so many. By the index alone: each row of the table is
 * a page.
 */
export function digestRangeEnd({ from, to }: Window, digests: number): Ready {
  const text = `SELECT from_id FROM digest WHERE from_id <= $to_id AND from_id >= $from_id
    ORDER BY from_id DESC OFFSET ${digests - 1} LIMIT 1`;
  return [statement('search-digest-range-end', text), { from_id: from, to_id: to }];
}

/**
 * The blocks of notifications that may have what is looked for, newest first. Of those that begin before the window
 * only the last one reaches into it: without the bound on `from_id`, for which there is an index, all older ones would
 * be read too.
 * @param scope one index has it: each block has a delivery in it
 */
export function candidates(condition: string, { from, to }: Window, limit: number, scope: Scope = {}): Ready {
  const own = deliveryConditions(scope);
  const inBlock = where(['notification_id >= from_id', 'notification_id <= to_id'], own.texts);
  // A scalar query with an order, one look into the index for each block: as a join it would read all of the index.
  const isIn = `(SELECT notification_id FROM delivery ${inBlock} ORDER BY notification_id DESC LIMIT 1) IS NOT NULL`;
  const text = `SELECT from_id AS from, to_id AS to FROM digest
    WHERE from_id <= $to_id AND to_id >= $from_id AND ${condition} ${own.texts.length > 0 ? `AND ${isIn}` : ''}
      AND from_id >= coalesce((SELECT from_id FROM digest WHERE from_id <= $from_id ORDER BY from_id DESC LIMIT 1), $from_id)
    ORDER BY from_id DESC LIMIT ${limit}`;
  return [statement('search-digests', text), { from_id: from, to_id: to, ...own.values }];
}

const where = (...texts: readonly string[][]): string => {
  const all = texts.flat();
  return all.length === 0 ? '' : `WHERE ${all.join(' AND ')}`;
};
