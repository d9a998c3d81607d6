import { errorClassCondition, errorClasses, errorClassInSql } from '../deliveries/error-class.js';
import type { Selection } from '../deliveries/selection.js';
import type { Values } from '../infra/postgres/statement.js';
import { deadStates, nameOf, type DeliveryKey, type DeliveryState } from '../ledger/delivery.js';
import type { LedgerTable } from '../ledger/partitions.js';
import { perDay, type StatementOfDay } from '../ledger/per-day.js';
import type { Meant } from './replay.js';

/*
 * How the ledger is searched for the deliveries of a selection: one day after the other, in the order of their keys, a
 * limited number of rows at a time. Each row is looked at once, however often the search is broken off.
 */

/** How the rows of a day are found. */
export const routes = [
  /** They are named one by one. */
  'deliveries',
  /** By the indexes of dead letters and of what waits, which begin with the subscription. */
  'subscriptions',
  /** By the index of all dead letters. */
  'dead',
  /** No index has these states: each delivery of the day is looked at. */
  'key',
] as const;
export type Route = (typeof routes)[number];

const waiting = ['waiting', 'held'] as const satisfies DeliveryState[];

/** Each of them has its rows read up to the limit, so for more of them the index of all dead letters costs less. */
const fewSubscriptions = 8;

export function routeFor({ selection, states }: Meant): Route {
  if (selection.deliveries) return 'deliveries';
  const subscriptions = subscriptionsOf(selection);
  const areIn = (indexed: readonly DeliveryState[]) => states.every((state) => indexed.includes(state));
  if (subscriptions && subscriptions.length <= fewSubscriptions && areIn([...deadStates, ...waiting]))
    return 'subscriptions';
  return areIn(deadStates) ? 'dead' : 'key';
}

/** Whether each row that this route finds is meant: then no more of them need be read than are wanted. */
export function findsOnlyMeant(meant: Meant): boolean {
  const { errorClasses, replay, groups, channels } = meant.selection;
  if (errorClasses || replay !== undefined || groups || channels) return false;
  const route = routeFor(meant);
  return route === 'subscriptions' || (route === 'dead' && !subscriptionsOf(meant.selection));
}

/** Null: of any. */
function subscriptionsOf({ subscriptions, groups }: Selection): readonly string[] | null {
  const named = subscriptions ?? groups?.map(({ subscriptionId }) => subscriptionId);
  return named ? [...new Set(named)] : null;
}

const columns = 'notification_id, subscription_id, state, last_status, last_error, replay_id';
const inOrder = `ORDER BY notification_id, subscription_id LIMIT $scan`;
const further = `notification_id >= $after_notification AND notification_id < $before
      AND (notification_id, subscription_id) > ($after_notification, $after_subscription)`;

/**
 * A branch for each state: a partial index serves only a condition that names its states. One that is not asked for
 * costs nothing.
 */
const ofStates = (states: readonly DeliveryState[], branch: (state: DeliveryState) => string): string =>
  states.map((state) => `(${branch(state)})`).join('\n    UNION ALL ');

const isAskedFor = (state: DeliveryState) => `'${state}' = ANY ($states::text[])`;

const walks: Record<Route, (delivery: string) => string> = {
  deliveries: (delivery) => `
    SELECT found.* FROM unnest($notifications_named::uuid[], $subscriptions_named::uuid[]) AS named (n, s) CROSS JOIN LATERAL (
      SELECT ${columns} FROM ${delivery} WHERE notification_id = named.n AND subscription_id = named.s LIMIT 1
    ) AS found WHERE ${further} ${inOrder}`,
  subscriptions: (delivery) => `
    SELECT found.* FROM unnest($subscriptions::uuid[]) AS wanted (id) CROSS JOIN LATERAL (
    ${ofStates(
      [...deadStates, ...waiting],
      (state) => `SELECT ${columns} FROM ${delivery}
      WHERE subscription_id = wanted.id AND ${indexCondition(state)} AND ${further} AND ${isAskedFor(state)}
      ORDER BY notification_id LIMIT $scan`,
    )}
    ) AS found ${inOrder}`,
  dead: (delivery) => `
    SELECT * FROM (
    ${ofStates(
      deadStates,
      (state) =>
        `SELECT ${columns} FROM ${delivery} WHERE state = '${state}' AND ${further} AND ${isAskedFor(state)} ${inOrder}`,
    )}
    ) AS found ${inOrder}`,
  key: (delivery) => `SELECT ${columns} FROM ${delivery} WHERE ${further} ${inOrder}`,
};

/** Deliveries that wait or are held have an index whose condition is a range. */
const indexCondition = (state: DeliveryState): string =>
  state === 'waiting' || state === 'held'
    ? `state BETWEEN 'waiting' AND 'held' AND state = '${state}'`
    : `state = '${state}'`;

const ofClasses = errorClasses
  .map((name) => `'${name}' = ANY ($error_classes::text[]) AND ${errorClassCondition(name)}`)
  .join(' OR ');

/** Of `walked`, what is meant as far as the deliveries tell. */
const meant = `
    SELECT notification_id, subscription_id FROM walked WHERE state::text = ANY ($states::text[])
      AND ($subscriptions::uuid[] IS NULL OR subscription_id = ANY ($subscriptions::uuid[]))
      AND ($error_classes::text[] IS NULL OR ${ofClasses})
      AND ($replay::uuid IS NULL OR replay_id = $replay)
      AND ($group_subscriptions::uuid[] IS NULL OR (subscription_id, state::text, ${errorClassInSql}) IN (
        SELECT * FROM unnest($group_subscriptions::uuid[], $group_states::text[], $group_classes::text[])
      ))
    ORDER BY notification_id, subscription_id`;

/** Of these, what is meant as far as their notifications tell. */
const fitting = (notification: string): string => `
    SELECT w.notification_id, w.subscription_id, n.is_erased FROM (${meant}) w
    CROSS JOIN LATERAL (
      SELECT channel, body IS NULL AS is_erased FROM ${notification} WHERE id = w.notification_id OFFSET 0
    ) n
    WHERE $channels::text[] IS NULL OR n.channel = ANY ($channels::text[])`;

/**
 * Common table expressions: `walked`, the next rows after the cursor, at most `$scan`, and `matched`, those of them
 * that are meant, at most `$limit` (null: all).
 */
const searching = (route: Route, of: (table: LedgerTable) => string, withNotification = true): string => `
  walked AS MATERIALIZED (${walks[route](of('delivery'))}),
  matched AS MATERIALIZED (${withNotification ? fitting(of('notification')) : meant} LIMIT $limit),
  reached AS MATERIALIZED (
    SELECT (SELECT count(*)::int FROM walked) AS walked, last.notification_id AS last_notification, last.subscription_id AS last_subscription
    FROM (VALUES (1)) AS one LEFT JOIN LATERAL (
      SELECT * FROM walked ORDER BY notification_id DESC, subscription_id DESC LIMIT 1
    ) AS last ON true
  )`;

const byRoute = (make: (route: Route) => StatementOfDay): Record<Route, StatementOfDay> =>
  Object.fromEntries(routes.map((route) => [route, make(route)])) as Record<Route, StatementOfDay>;

/** How far a search came. `last_notification` is null where it found no row. */
export interface ReachedRow {
  walked: number;
  last_notification: string | null;
  last_subscription: string | null;
}

/** One row, without a key, where none is meant. */
export interface FoundRow extends ReachedRow {
  notification_id: string | null;
  subscription_id: string | null;
  is_erased: boolean | null;
}

export const findMeant = byRoute((route) =>
  perDay(
    `find-meant-${route}`,
    (of) => `WITH ${searching(route, of)}
      SELECT * FROM reached LEFT JOIN matched ON true ORDER BY notification_id, subscription_id`,
  ),
);

export interface CountedRow extends ReachedRow {
  count: number;
  notifications: number;
  first_matched: string | null;
  last_matched: string | null;
  by_subscription: [subscriptionId: string, count: number][];
  sample: [notificationId: string, subscriptionId: string][];
}

/** Where channels narrow it, each delivery brings its notification along, which is most of the work. */
const counting =
  (name: string, withNotification: boolean) =>
  (route: Route): StatementOfDay =>
    perDay(
      `${name}-${route}`,
      (of) => `WITH ${searching(route, of, withNotification)}
      SELECT reached.*,
        (SELECT count(*)::int FROM matched) AS count,
        (SELECT count(*)::int FROM (SELECT DISTINCT notification_id FROM matched) AS each) AS notifications,
        (SELECT notification_id FROM matched ORDER BY notification_id LIMIT 1) AS first_matched,
        (SELECT notification_id FROM matched ORDER BY notification_id DESC LIMIT 1) AS last_matched,
        (SELECT coalesce(json_agg(json_build_array(subscription_id, count)), '[]')
         FROM (SELECT subscription_id, count(*)::int AS count FROM matched GROUP BY 1) AS each) AS by_subscription,
        (SELECT coalesce(json_agg(json_build_array(notification_id, subscription_id)), '[]')
         FROM (SELECT * FROM matched LIMIT $sample) AS each) AS sample
      FROM reached`,
    );

export const countMeant = byRoute(counting('count-meant', false));
export const countMeantOfChannels = byRoute(counting('count-meant-of-channels', true));

export interface Bounds {
  after: DeliveryKey;
  before: string;
  /** Rows that may be looked at. */
  scan: number;
  /** Deliveries that may be found; null: as many as there are. */
  limit: number | null;
}

/** A delivery that an operator names twice is found once. */
const eachOnce = (keys: readonly DeliveryKey[]): DeliveryKey[] => [
  ...new Map(keys.map((key) => [nameOf(key), key])).values(),
];

export function bindSearch({ selection, states }: Meant, { after, before, scan, limit }: Bounds): Values {
  const named = selection.deliveries && eachOnce(selection.deliveries);
  return {
    states,
    subscriptions: subscriptionsOf(selection),
    channels: selection.channels ?? null,
    error_classes: selection.errorClasses ?? null,
    replay: selection.replay ?? null,
    group_subscriptions: selection.groups?.map(({ subscriptionId }) => subscriptionId) ?? null,
    group_states: selection.groups?.map(({ state }) => state) ?? null,
    group_classes: selection.groups?.map(({ errorClass }) => errorClass) ?? null,
    notifications_named: named?.map(({ notificationId }) => notificationId) ?? null,
    subscriptions_named: named?.map(({ subscriptionId }) => subscriptionId) ?? null,
    after_notification: after.notificationId,
    after_subscription: after.subscriptionId,
    before,
    scan,
    limit,
  };
}

/** The next notifications after the cursor: the same for what keeps their content and for what looks at it. */
const nextNotifications = (notification: string, columns: string): string =>
  `SELECT ${columns} FROM ${notification}
    WHERE id > $after_notification AND id < $before ORDER BY id LIMIT $scan`;

/**
 * Of bodies that one statement parses. A body may have a megabyte: thousands of them would take longer than a statement
 * may, each time anew, and what is read of them would be in the memory of a process that also delivers.
 */
const mostBytes = 4 * 1024 * 1024;

/**
 * Those of the next notifications that may yet be replaced (src/ledger/replace-scheduled.ts) keep their content until
 * the transaction ends: what is read of them afterwards, and sent by that, is so still. One that was due an hour ago
 * can no longer be replaced: no transaction is open for as long as that.
 */
export const keepScheduled = perDay(
  'keep-scheduled',
  (of) => `
  WITH walked AS MATERIALIZED (
    ${nextNotifications(of('notification'), 'id, not_before')}
  )
  SELECT FROM walked w JOIN ${of('notification')} n ON n.id = ANY (ARRAY[w.id])
  WHERE w.not_before > now() - interval '1 hour' ORDER BY w.id FOR SHARE OF n`,
);

/**
 * For `everythingFor`: the next notifications after the cursor, of the channels of the subscription, with what its
 * filters look at and the delivery that there is. The statement looks at `$scan` notifications; at fewer, but at least
 * one, where their bodies are too many bytes.
 */
export const findNotifications = perDay(
  'find-notifications',
  (of) => `
  WITH next AS MATERIALIZED (
    ${nextNotifications(of('notification'), 'id, channel, CASE WHEN channel = ANY ($channels::text[]) THEN octet_length(body) END AS bytes')}
  ),
  walked AS MATERIALIZED (
    SELECT id, channel FROM (
      SELECT id, channel, coalesce(sum(bytes) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before FROM next
    ) AS sized WHERE bytes_before < ${mostBytes}
  ),
  reached AS MATERIALIZED (
    SELECT (SELECT count(*)::int FROM walked) AS walked, (SELECT id FROM walked ORDER BY id DESC LIMIT 1) AS last_notification,
      (SELECT count(*) FROM next) < $scan AND (SELECT count(*) FROM next) = (SELECT count(*) FROM walked) AS is_end
  )
  SELECT reached.*, w.id AS notification_id, w.channel, n.characteristics, n.main_object, n.is_erased, d.state
  FROM reached LEFT JOIN walked w ON w.channel = ANY ($channels::text[])
  LEFT JOIN LATERAL (
    SELECT content IS NULL AS is_erased, content -> 'kenmerken' AS characteristics, content ->> 'hoofdObject' AS main_object
    FROM (SELECT body::json AS content FROM ${of('notification')} WHERE id = w.id OFFSET 0) AS parsed
  ) n ON true
  LEFT JOIN LATERAL (
    SELECT state FROM ${of('delivery')} WHERE notification_id = w.id AND subscription_id = $subscription OFFSET 0
  ) d ON true
  ORDER BY w.id`,
);

export interface NotificationRow extends Pick<ReachedRow, 'walked' | 'last_notification'>, Record<string, unknown> {
  /** There are no more before the end of the day, or of what is meant. */
  is_end: boolean;
  notification_id: string | null;
  channel: string;
  characteristics: Record<string, string> | null;
  main_object: string | null;
  is_erased: boolean;
  /** Of the delivery; null: there is none. */
  state: DeliveryState | null;
}
