// Days of the ledger that are filled aside, in a schema of their own, and then exchanged for those of the running
// ledger in an instant: the empty ledger and the full one are measured right after each other, on the same servers and
// processes.
import { channels } from '../bench/notification.mjs';
import { compiled } from '../ready-to-run.mjs';

/** @typedef {import('../../src/ledger/partitions.js').Partition} Partition */
/** @typedef {import('./cases.mjs').Deliveries} Deliveries */
/** @typedef {import('./database.mjs').Database} Database */

const tables = /** @type {const} */ (['notification', 'delivery', 'attempt']);
const idOf = { notification: 'id', delivery: 'notification_id', attempt: 'notification_id' };
const dayMs = 86_400_000;
/** More than the age at which a digest is written. */
const undigestedMs = 300_000;
/** Its subscriptions are real ones, which the measurements leave alone. */
const channel = channels.many;
/** Short: bodies are never read again unless a delivery is sent, and ten million of 1 KiB would fill the disk. */
const body = JSON.stringify({ kanaal: channel, resource: 'status', actie: 'create' });

/** As `migrations` and the partition keeper of Heraut make them, so that they fit when they are attached. */
const clone = `
  CREATE SCHEMA aside;
  CREATE SCHEMA in_exchange;
  -- a UUIDv7 of that millisecond with the number at its end (RFC 9562 §5.7)
  CREATE FUNCTION aside.id_at(ms bigint, number bigint) RETURNS uuid LANGUAGE sql IMMUTABLE
    AS $$ SELECT (lpad(to_hex(ms), 12, '0') || '70008000' || lpad(to_hex(number), 12, '0'))::uuid $$;
  ${tables.map((table) => `CREATE TABLE aside.${table} (LIKE public.${table} INCLUDING ALL) PARTITION BY RANGE (${idOf[table]})`).join(';\n')}`;

export class FilledDays {
  /** @type {Partition[]} */
  #partitions = [];

  /**
   * @param {Database} database
   * @param {(line: string) => void} log
   */
  constructor(database, log) {
    this.database = database;
    this.log = log;
  }

  /**
   * Writes the rows aside; the running ledger does not see them.
   * @param {number} rows
   * @param {Deliveries} deliveries
   * @param {string[]} ids of the subscriptions that they are for
   */
  async fill(rows, deliveries, ids) {
    const { createPartition, partitionsBetween, timeOfId } = await ledgerPartitions();
    const startedAt = performance.now();
    const [{ now }] = await this.database.query('SELECT (extract(epoch FROM now()) * 1000)::float8 AS now');
    this.#partitions = partitionsBetween(now - (deliveries.days - 1) * dayMs, now);
    await this.database.query(clone);
    for (const partition of this.#partitions) {
      await this.database.change(['SET LOCAL search_path = aside, public', createPartition(partition)]);
      await this.database.change(setAside(partition));
    }
    let filled = 0;
    await Promise.all(
      this.#partitions.map(async (partition) => {
        const toMs = Math.min(timeOfId(partition.to), Math.floor(now)); // nothing was published in the future
        const span = { fromMs: timeOfId(partition.from), toMs };
        const text = insertInto(partition, { rows: Math.ceil(rows / deliveries.days), ...span, deliveries });
        if (text === undefined) return;
        await this.database.query(text, [ids]);
        await this.database.query(`VACUUM (ANALYZE) aside.${partition.name}`); // as autovacuum would have by then
        filled += 1;
        this.log(`filling: ${partition.name} done (${filled})`);
      }),
    );
    const [{ size }] = await this.database.query(
      "SELECT pg_size_pretty(sum(pg_total_relation_size(oid))) AS size FROM pg_class WHERE relkind = 'r' AND relnamespace = 'aside'::regnamespace",
    );
    this.log(`filled: ${size} in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
  }

  /**
   * Puts the filled days into the running ledger, and those that were there aside; the next time, the other way round.
   */
  async exchange() {
    const [live, aside] = [await this.#tablesIn('public'), await this.#tablesIn('aside')];
    const lock = `LOCK TABLE ${tables.map((table) => `public.${table}`).join(', ')} IN ACCESS EXCLUSIVE MODE`;
    await this.database.change([lock, ...this.#partitions.flatMap((partition) => moves(partition, live, aside))]);
  }

  /**
   * Writes one digest, without bits, of all notifications but those of the last minutes, as an installation that runs
   * for long has digests of them. Otherwise the dispatcher would write one for each thousand notifications while it is
   * measured.
   */
  async digest() {
    const { lowestIdAt } = await ledgerPartitions();
    const [{ now }] = await this.database.query('SELECT (extract(epoch FROM now()) * 1000)::float8 AS now');
    await this.database.query(
      `INSERT INTO digest (from_id, to_id, bits)
       SELECT (SELECT id FROM notification ORDER BY id LIMIT 1), newest.id, NULL
       FROM notification newest WHERE newest.id < $1 ORDER BY newest.id DESC LIMIT 1`,
      [lowestIdAt(Math.floor(now) - undigestedMs)],
    );
  }

  /** Removes what is aside. */
  async drop() {
    await this.database.query('DROP SCHEMA aside, in_exchange CASCADE');
  }

  /**
   * @param {string} schema
   * @returns {Promise<Set<string>>}
   */
  async #tablesIn(schema) {
    const rows = await this.database.query('SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace', [
      schema,
    ]);
    return new Set(rows.map(({ relname }) => relname));
  }
}

/**
 * @param {Database} database
 * @returns {Promise<string[]>} ids
 */
export async function idleSubscriptions(database) {
  const [{ ids }] = await database.query(
    "SELECT array_agg(id::text ORDER BY id) AS ids FROM subscription WHERE channels->0->>'channel' = $1",
    [channel],
  );
  return ids;
}

/**
 * Removes everything from the running ledger; nothing may be under way.
 * @param {Database} database
 */
export async function emptyLedger(database) {
  await database.change([
    `TRUNCATE ${[...tables, 'digest', 'once_key', 'held_subscription'].map((table) => `public.${table}`).join(', ')}`,
  ]);
}

/**
 * The program's own, of the build that is measured.
 * @returns {Promise<typeof import('../../src/ledger/partitions.js')>}
 */
function ledgerPartitions() {
  return compiled('ledger/partitions.js');
}

/**
 * Makes a table of its own out of a partition. The condition spares Postgres a look at every row when it is attached.
 * @param {Partition} partition
 */
function setAside({ table, name, from, to }) {
  return [
    `ALTER TABLE aside.${table} DETACH PARTITION aside.${name}`,
    `ALTER TABLE aside.${name} ADD CONSTRAINT is_of_the_day CHECK (${idOf[table]} >= '${from}' AND ${idOf[table]} < '${to}')`,
  ];
}

/**
 * @param {Partition} partition
 * @param {Set<string>} live the names of the tables in the running ledger
 * @param {Set<string>} aside
 * @returns {string[]}
 */
function moves({ table, name, from, to }, live, aside) {
  const takeOut = [
    `ALTER TABLE public.${table} DETACH PARTITION public.${name}`,
    `ALTER TABLE public.${name} SET SCHEMA in_exchange`,
  ];
  const putIn = [
    `ALTER TABLE aside.${name} SET SCHEMA public`,
    `ALTER TABLE public.${table} ATTACH PARTITION public.${name} FOR VALUES FROM ('${from}') TO ('${to}')`,
  ];
  return [
    ...(live.has(name) ? takeOut : []),
    ...(aside.has(name) ? putIn : []),
    ...(live.has(name) ? [`ALTER TABLE in_exchange.${name} SET SCHEMA aside`] : []),
  ];
}

/**
 * @param {Partition} partition
 * @param {{ rows: number, fromMs: number, toMs: number, deliveries: Deliveries }} what
 * @returns {string | undefined} with the ids of subscriptions as its parameter; undefined: the case has none of these
 */
function insertInto({ table, name }, { rows, fromMs, toMs, deliveries }) {
  const columns = columnsOf(table, deliveries);
  if (!columns) return undefined;
  return `
    INSERT INTO aside.${name} (${Object.keys(columns).join(', ')})
    SELECT ${Object.values(columns).join(', ')}
    FROM (
      SELECT n, aside.id_at(ms, n) AS id, to_timestamp(ms / 1000.0) AS published
      FROM (SELECT n, ${fromMs} + ${toMs - fromMs} * n / ${rows + 1} AS ms FROM generate_series(1::bigint, ${rows}) AS n) AS moment
    ) AS made CROSS JOIN (SELECT $1::uuid[] AS subscriptions) AS known`;
}

/**
 * @param {Partition['table']} table
 * @param {Deliveries} deliveries
 * @returns {Record<string, string> | undefined}
 */
function columnsOf(table, { subscription, notification, columns, attempt }) {
  const key = { notification_id: 'id', subscription_id: subscription };
  if (table === 'delivery') return { ...key, ...columns };
  if (table === 'attempt') {
    return attempt && { ...key, generation: '1', number: '1', started_at: 'published', duration_ms: '10', ...attempt };
  }
  return {
    id: 'id',
    channel: `'${channel}'`,
    publisher: "'bench'",
    body: `'${body}'`,
    accepted_at: 'published',
    ...notification,
  };
}
