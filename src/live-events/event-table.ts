import { advisoryLocks } from '../infra/postgres/advisory-locks.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';

/** Longer than a listener needs to connect again: what happens meanwhile is written. */
const listenedMs = 60_000;
const keptMs = 300_000;
/** The beginning of a time in which events are written: before it there was a gap. */
export const recordingBegan = 'recording.began';

/**
 * One at a time: the numbers of events become visible in their order, so that one who reads on from a number misses
 * none.
 */
const inTurn = `turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(${advisoryLocks.liveEvents}))`;

const items = rowsOf<string>('item', { event: ['text', (event) => event] });

const insertEvents = statement(
  'write-live-events',
  `WITH ${inTurn} INSERT INTO live_event (event) SELECT item.event FROM turn, ${items.from}`,
);

/** `FOR UPDATE`: of two processes that get their first listener at once, one notes the beginning. */
const keepListening = statement(
  'keep-listening',
  `WITH ${inTurn},
     before AS MATERIALIZED (SELECT expires_at > now() AS is_on FROM turn, live_listener FOR UPDATE OF live_listener),
     began AS (
       INSERT INTO live_event (event) SELECT '{"event":"${recordingBegan}"}' FROM before WHERE NOT is_on
     )
   UPDATE live_listener SET expires_at = now() + interval '${listenedMs} ms' FROM before`,
);

export interface EventRow {
  id: string;
  at: Date;
  event: string;
}

export const findAfter = statement(
  'read-live-events',
  `SELECT id, at, event FROM live_event WHERE id > $after::bigint ORDER BY id LIMIT $most::int`,
);

/** `last`: the newest number that was given. `first`: the oldest that is kept, null where none is. */
const findEnds = statement(
  'live-event-ends',
  `SELECT (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM live_event_id)::text AS last,
          (SELECT id FROM live_event ORDER BY id LIMIT 1)::text AS first`,
);

export const sweepEvents = statement(
  'sweep-live-events',
  `DELETE FROM live_event WHERE id = ANY (ARRAY(
     SELECT id FROM live_event
     WHERE at >= to_timestamp($since_ms::float8 / 1000) - interval '${keptMs} ms' AND at < now() - interval '${keptMs} ms'
     ORDER BY at LIMIT $limit
   ))`,
);

export const writeEvents = (postgres: Postgres, events: readonly string[]): Promise<number> =>
  postgres.affected(insertEvents, items.bind(events));

export const readAfter = (postgres: Postgres, after: bigint, most: number): Promise<EventRow[]> =>
  postgres.query<EventRow>(findAfter, { after: String(after), most });

export async function readEnds(postgres: Postgres): Promise<{ last: bigint; first: bigint | undefined }> {
  const [row] = await postgres.query<{ last: string; first: string | null }>(findEnds);
  return { last: BigInt(row!.last), first: row!.first === null ? undefined : BigInt(row!.first) };
}

export const listen = (postgres: Postgres): Promise<number> => postgres.affected(keepListening);

/**
 * Upkeep: removes what has become older than five minutes since then, up to `limit` events.
 * @param sinceMs milliseconds since 1970, by Postgres' clock
 * @returns how many
 */
export const sweepLiveEvents = (postgres: Postgres, sinceMs: number, limit: number): Promise<number> =>
  postgres.affected(sweepEvents, { since_ms: sinceMs, limit });
