import type { Postgres, Query } from '../infra/postgres/postgres.js';
import type { Statement, Values } from '../infra/postgres/statement.js';
import { isDead, namedDeliveries, sameDelivery, type DeliveryKey } from './delivery.js';
import type { LedgerTable } from './partitions.js';
import { perDay } from './per-day.js';
import { textVersions, type TextVersion } from './text-versions.js';
import { nextDeliveries, walkDeliveries, type ReachedDelivery, type WalkOptions } from './walk-deliveries.js';

export const unfinished = "state IN ('queued', 'waiting', 'held', 'sending')";

/** A receiver's answer is in an error that begins with `HTTP`, behind its status. The others are our own words. */
export const errorWithoutAnswer = (delivery: string): string =>
  `CASE WHEN ${delivery}.last_error LIKE 'HTTP %' THEN 'HTTP ' || ${delivery}.last_status ELSE ${delivery}.last_error END`;

const erasedDetails = `json_build_object('address', a.details -> 'address', 'headers', NULL, 'body', NULL)`;

/*
 * With the text of a notification goes what receivers answered to it: they may have repeated it. Of an attempt's error
 * the status stays, of its details the address that was called. An attempt that was erased before is not written anew.
 */
const erasing = (of: (table: LedgerTable) => string, page: string): string => `
    answers AS (
      UPDATE ${of('attempt')} a SET
        error = CASE WHEN a.error IS NOT NULL THEN 'HTTP ' || a.status END,
        details = CASE WHEN a.details IS NOT NULL THEN ${erasedDetails} END
      FROM ${page} WHERE a.notification_id = ANY (ARRAY[${page}.notification_id]) AND a.subscription_id = ${page}.subscription_id
        AND a.status IS NOT NULL AND (a.error <> 'HTTP ' || a.status OR a.details::text <> ${erasedDetails}::text)
    ),
    errors AS (
      UPDATE ${of('delivery')} d SET last_error = 'HTTP ' || d.last_status
      FROM ${page} WHERE ${sameDelivery(page)} AND d.last_error LIKE 'HTTP %' AND d.last_error <> 'HTTP ' || d.last_status
    )`;

/** Among the notifications of `page`, those with such a delivery. */
const havingOne = (condition: string): string =>
  `ARRAY(SELECT DISTINCT notification_id FROM page WHERE ${condition}) AS found`;

interface JudgedRow extends ReachedDelivery {
  found: string[];
}

/** The index `replay_everything_for` has only replays that have not ended: those that have are kept for much longer. */
export const isReplayRunning = "kind = 'replay' AND state = 'running' AND ended_at IS NULL";

/** An operator may have it sent again, or has asked for that, and the replay has yet to come to it. */
const isWanted = `${isDead()} AND (
      ended_at > now() - $grace_days::int * interval '1 day'
      OR EXISTS (SELECT FROM coming WHERE page.state::text = ANY (coming.states)
        AND page.notification_id >= coming.after_notification AND page.notification_id < coming.before_id)
    )`;

export const judgeItems = perDay(
  'needed-notifications',
  (of) => `
    WITH ${nextDeliveries(of('delivery'))},
    coming AS MATERIALIZED (SELECT states, after_notification, before_id FROM replay WHERE ${isReplayRunning})
    SELECT reached.*, ${havingOne(`${unfinished} OR ${isWanted}`)} FROM reached`,
);

/**
 * Of notifications of one day, those of which a delivery is not finished, or is a dead letter that became one in the
 * last `graceDays`, or that a running replay has yet to come to.
 * @returns undefined: it was stopped before it knew
 */
export function findNeeded(
  postgres: Postgres,
  day: number,
  ids: readonly string[],
  { graceDays, ...options }: WalkOptions & { graceDays: number },
): Promise<Set<string> | undefined> {
  const found = new Set<string>();
  const values = { grace_days: graceDays };
  return lookThrough(postgres, judgeItems(day), ids, found, { ...options, settled: found, values });
}

async function lookThrough(
  postgres: Postgres,
  items: Statement,
  ids: readonly string[],
  found: Set<string>,
  { values: more, ...options }: WalkOptions & { values?: Values },
): Promise<Set<string> | undefined> {
  const look = async (values: Values) => {
    const [row] = await postgres.query<JudgedRow>(items, { ...values, ...more });
    for (const id of row!.found) found.add(id);
    return row!;
  };
  return (await walkDeliveries(ids, look, options)) ? found : undefined;
}

export const eraseAnswersItems = perDay(
  'erase-answers',
  (of) => `
    WITH ${nextDeliveries(of('delivery'))}, ${erasing(of, 'page')}
    SELECT reached.*, ${havingOne(unfinished)} FROM reached`,
);

/**
 * Erases what receivers answered to notifications of one day, in statements of their own, which may be repeated. Their
 * texts are to go last: as long as one is there, whoever looks for it again after a crash finds that there is work
 * left.
 * @returns those of which a delivery is not finished, one that was retried meanwhile for example; undefined: it was
 *   stopped before the end
 */
export function eraseAnswers(
  postgres: Postgres,
  day: number,
  ids: readonly string[],
  options: WalkOptions,
): Promise<Set<string> | undefined> {
  return lookThrough(postgres, eraseAnswersItems(day), ids, new Set(), options);
}

export const eraseAnswersOfItems = perDay(
  'erase-late-answers',
  (of) => `
    WITH late AS MATERIALIZED (SELECT * FROM ${namedDeliveries.from}), ${erasing(of, 'late')}
    SELECT FROM late LIMIT 0`,
);

/** The same for some deliveries of one day. */
export async function eraseAnswersOf(
  postgres: Postgres,
  day: number,
  deliveries: readonly DeliveryKey[],
): Promise<void> {
  await postgres.query(eraseAnswersOfItems(day), namedDeliveries.bind(deliveries));
}

export const eraseTextItems = perDay(
  'erase-texts',
  (of) => `
    WITH texts AS MATERIALIZED (
      SELECT n.id, octet_length(n.body) AS bytes, n.xmin::text = item.version AS is_as_read
      FROM ${textVersions.from} JOIN ${of('notification')} n ON n.id = ANY (ARRAY[item.id])
      WHERE n.body IS NOT NULL ORDER BY n.id FOR UPDATE OF n
    ),
    erased AS (
      UPDATE ${of('notification')} n SET body = NULL
      FROM texts WHERE n.id = ANY (ARRAY[texts.id]) AND texts.is_as_read RETURNING texts.bytes
    )
    SELECT count(*)::int AS bodies, coalesce(sum(bytes), 0)::float8 AS bytes,
      ARRAY(SELECT id FROM texts WHERE NOT is_as_read) AS renewed
    FROM erased`,
);

export interface Erased {
  bodies: number;
  /** Length of the texts that were erased. */
  bytes: number;
  /** Whose text is still there: a delivery of them was sent again since it was read. */
  renewed: string[];
}

/**
 * Before anything else in a transaction that erases texts of that day and notes it: whoever drops the day notes it too,
 * while it has the partitions, and the two would wait for each other.
 */
export const lockTexts = perDay('lock-texts', (of) => `LOCK TABLE ${of('notification')} IN ROW EXCLUSIVE MODE`);

/**
 * Erases the texts of notifications of one day, in the transaction of `query`.
 * @param texts as they were read before their deliveries were looked at
 */
export async function eraseTexts(query: Query, day: number, texts: readonly TextVersion[]): Promise<Erased> {
  if (texts.length === 0) return { bodies: 0, bytes: 0, renewed: [] };
  const [erased] = await query<Erased>(eraseTextItems(day), textVersions.bind(texts));
  return erased!;
}

const eraseKeyItems = perDay(
  'erase-request-keys',
  (of) =>
    `UPDATE ${of('notification')} SET request_key = NULL WHERE id = ANY ($ids::uuid[]) AND request_key IS NOT NULL`,
);

/** Their publishers chose them: they may be personal too. */
export async function eraseKeys(query: Query, day: number, ids: readonly string[]): Promise<void> {
  await query(eraseKeyItems(day), { ids });
}
