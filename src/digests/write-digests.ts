import type { Clock } from '../infra/clock.js';
import type { Postgres, Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { isAnyAway, readDays } from '../ledger/days.js';
import { lockDigests } from '../ledger/digests.js';
import { dayMs, dayOfId, idAfter, lowestId, lowestIdAt, timeOfId } from '../ledger/partitions.js';
import { MarkFilter } from './mark-filter.js';
import { giveMarks, markOf, type MarkKind } from './marks.js';

/** In one digest. */
export const mostNotifications = 1024;
/** Of its bodies together, and of its deliveries: what one transaction reads. */
const mostBytes = 4 * 1024 * 1024;
const mostDeliveries = 20_000;
/**
 * After each digest the writer rests this many times as long as the digest took: it reads the marks of a thousand
 * bodies in the thread of a process that also delivers, and on the embedded database every other statement waits
 * meanwhile.
 */
const restsPerDigest = 3;
/**
 * Digests that are this far behind are written without rests: a search reads notifications without a digest row by row.
 */
const farBehindMs = 10 * 60_000;

interface BlockRow {
  id: string;
  channel: string;
  publisher: string;
  request_key: string | null;
  body: string | null;
  /** There are as many as fit into a digest. */
  is_full: boolean;
}

/** By id. The first one, and more as long as their bodies are not too many bytes. */
export const readBlock = statement(
  'read-digest-block',
  `SELECT id, channel, publisher, request_key, body, is_full FROM (
     SELECT id, channel, publisher, request_key, body, count(*) OVER () = ${mostNotifications} AS is_full,
       sum(bytes) OVER (ORDER BY id) - bytes AS bytes_before
     FROM (
       SELECT id, channel, publisher, request_key, body, coalesce(octet_length(body), 0) AS bytes FROM notification
       WHERE id >= $from AND id <= $to ORDER BY id LIMIT ${mostNotifications}
     ) block
   ) sized WHERE bytes_before < ${mostBytes} ORDER BY id`,
);

interface SubscribersRow {
  deliveries: number;
  matched: number;
  subscription_ids: string[] | null;
}

export const readSubscribers = statement(
  'read-digest-subscribers',
  `WITH taken AS MATERIALIZED (
     SELECT notification_id, subscription_id FROM delivery
     WHERE notification_id >= $from AND notification_id <= $to ORDER BY notification_id LIMIT ${mostDeliveries + 1}
   ),
   subscriber AS MATERIALIZED (SELECT DISTINCT subscription_id AS id FROM taken)
   SELECT (SELECT count(*)::int FROM taken) AS deliveries,
     (SELECT count(DISTINCT notification_id)::int FROM taken) AS matched,
     (SELECT array_agg(id::text) FROM subscriber) AS subscription_ids`,
);

export const lastDigest = statement('last-digest', 'SELECT to_id FROM digest ORDER BY from_id DESC LIMIT 1');
export const staleDigest = statement(
  'stale-digest',
  'SELECT from_id, to_id FROM digest WHERE is_stale ORDER BY from_id LIMIT 1',
);

const write = statement(
  'write-digest',
  `INSERT INTO digest (from_id, to_id, bits) VALUES ($from, $to, $bits)
   ON CONFLICT (from_id) DO UPDATE SET to_id = EXCLUDED.to_id, bits = EXCLUDED.bits, is_stale = false`,
);

/** Those that begin and end between the same two days. The primary key serves the bounds of `from_id`. */
export const sweepItems = statement(
  'sweep-digests',
  `DELETE FROM digest WHERE from_id = ANY (ARRAY(
     SELECT gone.from_id FROM unnest($begins::uuid[], $ends::uuid[]) AS gap (begins_at, ends_at) CROSS JOIN LATERAL (
       SELECT from_id FROM digest WHERE from_id >= gap.begins_at AND from_id < gap.ends_at AND to_id < gap.ends_at
       ORDER BY from_id LIMIT $limit
     ) gone
     LIMIT $limit
   ))`,
);

/**
 * Upkeep: removes digests of days that are dropped, up to `limit`, also between days that are kept. A day that is away
 * may come back.
 * @returns how many
 */
export async function sweepDigests(postgres: Postgres, limit: number): Promise<number> {
  const days = (await readDays(postgres)).map(({ day }) => day);
  const gaps = days
    .map((day, nr) => ({ from: nr === 0 ? 0 : days[nr - 1]! + 1, to: day }))
    .filter(({ from, to }) => from < to);
  const begins = gaps.map(({ from }) => lowestIdAt(from * dayMs));
  const ends = gaps.map(({ to }) => lowestIdAt(to * dayMs));
  return postgres.affected(sweepItems, { begins, ends, limit });
}

/** In one transaction: a process that accepts a replacement waits for it. */
const takenBackTogether = 1000;

/**
 * Of all that begin before `$until` only the last one may end after it: there is an index of where they begin. The
 * newest first, so that those that are left have no gap between them: its notifications would never be found again.
 */
export const takeBack = statement(
  'take-back-digests',
  `DELETE FROM digest WHERE from_id = ANY (ARRAY(
     SELECT from_id FROM digest WHERE to_id > $until
       AND from_id >= coalesce((SELECT from_id FROM digest WHERE from_id <= $until ORDER BY from_id DESC LIMIT 1), $until)
     ORDER BY from_id DESC LIMIT $limit
   )) RETURNING from_id`,
);

/**
 * Writes the digests of all notifications that are old enough, up to the last full block, and anew those that are out
 * of date. Any number of processes may.
 * @param untilMs milliseconds since 1970, by the ledger's clock: none that was accepted before is still to be committed
 */
export async function writeDigests(
  postgres: Postgres,
  untilMs: number,
  stopping: AbortSignal,
  clock: Clock,
): Promise<void> {
  const until = lowestIdAt(untilMs);
  // Postgres' clock was set back: notifications may yet come whose ids are among those of digests that are written.
  while ((await postgres.transaction((query) => takeSomeBack(query, until))) && !stopping.aborted);
  // Each in a transaction of its own: a process that accepts a replacement waits for one at most.
  while (!stopping.aborted && (await postgres.transaction(writeStale)));
  while (!stopping.aborted) {
    const since = clock.now();
    const writtenTo = await postgres.transaction((query) => writeNext(query, until));
    if (writtenTo === undefined) return;
    if (untilMs - timeOfId(writtenTo) < farBehindMs)
      await clock.pause((clock.now() - since) * restsPerDigest, stopping);
  }
}

/** @returns whether there may be more */
async function takeSomeBack(query: Query, until: string): Promise<boolean> {
  await query(lockDigests);
  const taken = await query(takeBack, { until, limit: takenBackTogether });
  return taken.length === takenBackTogether;
}

async function writeStale(query: Query): Promise<boolean> {
  await query(lockDigests);
  const [stale] = await query<{ from_id: string; to_id: string }>(staleDigest);
  if (!stale) return false;
  // Of a day that is away its notifications are not read, and would not be found when it is back. It may go, or come
  // back, meanwhile.
  const isPartAway = () => isAnyAway({ query }, dayOfId(stale.from_id), dayOfId(stale.to_id));
  const wasPartAway = await isPartAway();
  const block = await query<BlockRow>(readBlock, { from: stale.from_id, to: stale.to_id });
  const isWhole = block.at(-1)?.id === stale.to_id && !wasPartAway;
  const filter = isWhole ? await filterOf(query, block) : 'too-many';
  const bits = (await isPartAway()) ? null : filter;
  await query(write, { from: stale.from_id, to: stale.to_id, bits: bits === 'too-many' ? null : bits });
  return true;
}

/** @returns the last id that the digest has; undefined: there is none to be written */
async function writeNext(query: Query, until: string): Promise<string | undefined> {
  await query(lockDigests);
  const [last] = await query<{ to_id: string }>(lastDigest);
  let block = await query<BlockRow>(readBlock, { from: last ? idAfter(last.to_id) : lowestId, to: until });
  if (!block[0]?.is_full) return undefined;
  // Of a day that is away: between two digests, or within one, its notifications would never be found again.
  if (last && (await isAnyAway({ query }, dayOfId(last.to_id), dayOfId(block.at(-1)!.id)))) return undefined;
  let bits = await filterOf(query, block);
  while (bits === 'too-many' && block.length > 1) {
    block = block.slice(0, Math.ceil(block.length / 4));
    bits = await filterOf(query, block);
  }
  const [from, to] = [block[0]!.id, block.at(-1)!.id];
  await query(write, { from, to, bits: bits === 'too-many' ? null : bits });
  return to;
}

/** @returns null: their marks are too many to say anything; `too-many`: their deliveries are */
async function filterOf(query: Query, block: readonly BlockRow[]): Promise<Buffer | null | 'too-many'> {
  const range = { from: block[0]!.id, to: block.at(-1)!.id };
  const [found] = await query<SubscribersRow>(readSubscribers, range);
  const { deliveries, matched, subscription_ids } = found!;
  if (deliveries > mostDeliveries) return 'too-many';
  const filter = new MarkFilter();
  const known = new Map<MarkKind, Set<string>>();
  const give = (kind: MarkKind, value: string) => {
    let values = known.get(kind);
    if (!values) known.set(kind, (values = new Set()));
    if (values.has(value)) return;
    values.add(value);
    filter.add(markOf(kind, value));
  };
  for (const { channel, publisher, request_key: requestKey, body } of block)
    giveMarks({ channel, publisher, requestKey, body }, give);
  for (const id of subscription_ids ?? []) give('subscription', id);
  if (matched < block.length) give('unmatched', '');
  return filter.isUseless ? null : filter.bytes;
}
