import pg from 'pg';
import type { Role } from '../config/server-settings.js';
import type { Settings } from '../config/settings.js';
import { reasonOf } from '../infra/cannot-connect.js';
import { connectionAdvice, generalAdvice } from '../infra/postgres/connection-advice.js';
import { remedyOfNewer } from '../infra/postgres/migrated-by-newer.js';
import { migrationNames } from '../infra/postgres/migration-names.js';
import { orMarkNotConnected } from '../infra/postgres/not-connected.js';
import { poolingUnfit } from '../infra/postgres/pooled-by-transaction.js';
import { sqlState } from '../infra/postgres/postgres-errors.js';
import { asUtf8, encodingUnfit, isOfBytes, tablesElsewhere, type Ask } from '../infra/postgres/unfit.js';
import { examineEmbeddedKeys } from './embedded-secrets.js';
import { examineConnections } from './connections.pg.js';
import { inMegabytes } from './here.js';
import { examineLockTable } from './lock-table.pg.js';
import { examineSecretKeys } from './secret-keys.pg.js';
import { failed, ok, skipped, warning, type Finding } from './finding.js';
import { examineSessions } from './sessions.pg.js';

const connectMs = 5000;
/** Asked of the server for this connection, to see whether it arrives: a proxy in between may leave it out. */
const statementMs = 7000;

const names = [
  'postgres',
  'postgres-time-limits',
  'postgres-pooler',
  'postgres-durability',
  'postgres-connections',
  'postgres-sessions',
  'postgres-locks',
  'postgres-permissions',
  'clock',
  'migrations',
  'secret-keys',
  'processes',
];

export async function examinePostgres(settings: Settings): Promise<Finding[]> {
  const { DATABASE_URL } = settings;
  if (!DATABASE_URL)
    return [
      ok('postgres', 'the embedded database; only the process that has it open can look into it'),
      examineEmbeddedKeys(settings),
    ];
  const client = clientOf(DATABASE_URL);
  try {
    await orMarkNotConnected(client.connect());
    return await examineWith(client, settings);
  } catch (error) {
    const advice = connectionAdvice(error) ?? generalAdvice;
    const [, ...others] = names;
    return [
      failed('postgres', reasonOf(error), advice),
      ...others.map((name) => skipped(name, 'Postgres was not reached')),
    ];
  } finally {
    await client.end().catch(() => {});
  }
}

function clientOf(url: string): pg.Client {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: connectMs,
    query_timeout: statementMs,
    statement_timeout: statementMs,
    application_name: 'heraut doctor',
  });
  client.on('error', () => {}); // its queries fail with it
  return client;
}

async function examineWith(client: pg.Client, settings: Settings): Promise<Finding[]> {
  const startedAt = performance.now();
  await client.query('SELECT 1');
  const tookMs = performance.now() - startedAt;
  const looks: Record<string, () => Promise<Finding>> = {
    postgres: () => server(client, tookMs),
    'postgres-time-limits': () => timeLimits(client),
    'postgres-pooler': () => pooler(client, clientOf(settings.DATABASE_URL!)),
    'postgres-durability': () => durability(client),
    'postgres-connections': () => examineConnections(askOf(client)),
    'postgres-sessions': () => examineSessions(askOf(client)),
    'postgres-locks': () => examineLockTable(client, settings),
    'postgres-permissions': () => permissions(client),
    clock: () => clock(client),
    migrations: () => migrated(client),
    'secret-keys': () => examineSecretKeys(client, settings),
    processes: () => processes(client),
  };
  const found: Finding[] = [];
  for (const [name, look] of Object.entries(looks))
    found.push(await look().catch((error: unknown) => refused(name, error)));
  return found;
}

/** One look that is refused keeps nobody from the others. */
function refused(name: string, error: unknown): Finding {
  if ((error as { code?: string }).code === '42501') return skipped(name, 'this role may not look');
  const advice = connectionAdvice(error);
  // The one that looks has the last connection: how many there are, others tell.
  if (sqlState(error) === '53300') return { ...skipped(name, reasonOf(error)), advice };
  return failed(name, reasonOf(error), advice ?? 'Look at Postgres’ own log.');
}

async function server(client: pg.Client, tookMs: number): Promise<Finding> {
  const row = await only<{ version: number; text: string; replica: boolean; read_only: boolean; size: string }>(
    client,
    `SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS text,
            pg_is_in_recovery() AS replica, current_setting('transaction_read_only')::boolean AS read_only,
            pg_database_size(current_database()) AS size`,
  );
  const found = `PostgreSQL ${row.text}, ${tookMs.toFixed(1)} ms away, ${inMegabytes(Number(row.size))}`;
  if (row.replica) return failed('postgres', `${found}; it is a standby`, 'Point DATABASE_URL at the primary.');
  if (row.read_only)
    return failed(
      'postgres',
      `${found}; its transactions are read-only`,
      'Nothing is accepted or sent. Switch default_transaction_read_only off, for the server, the database and the role.',
    );
  const encoding = await encodingUnfit(askOf(client));
  if (encoding) return failed('postgres', `${found}; ${encoding.found}`, encoding.advice);
  if (row.version < 150_000) return failed('postgres', found, 'Heraut needs PostgreSQL 15 or newer.');
  if (await isOfBytes(askOf(client)))
    return warning(
      'postgres',
      `${found}; its database has the encoding SQL_ASCII`,
      `Searches by a characteristic whose name has capitals beyond ASCII may find too few or too many; all else works. To have UTF8: ${asUtf8}`,
    );
  return ok('postgres', found);
}

async function timeLimits(client: pg.Client): Promise<Finding> {
  const { limit } = await only<{ limit: string }>(
    client,
    `SELECT setting AS limit FROM pg_settings WHERE name = 'statement_timeout'`,
  );
  const name = 'postgres-time-limits';
  if (Number(limit) === statementMs) return ok(name, 'arrive at the server');
  return failed(
    name,
    `statement_timeout is ${limit} ms instead of the ${statementMs} ms that were asked for`,
    'A proxy in front of Postgres leaves connection parameters out, so that Postgres ends no statement that takes too long: point DATABASE_URL at Postgres itself, or let statement_timeout, lock_timeout and idle_in_transaction_session_timeout through where the proxy can.',
  );
}

async function pooler(client: pg.Client, other: pg.Client): Promise<Finding> {
  const name = 'postgres-pooler';
  try {
    await other.connect();
    const unfit = await poolingUnfit(askOf(client), askOf(other));
    return unfit ? failed(name, unfit.found, unfit.advice) : ok(name, 'a connection stays the same');
  } finally {
    await other.end().catch(() => {});
  }
}

/** The promise of a 201 depends on these. */
async function durability(client: pg.Client): Promise<Finding> {
  const { rows } = await client.query<{ name: string; setting: string }>(
    `SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes')`,
  );
  const off = rows.filter(({ setting }) => setting === 'off').map(({ name }) => name);
  const name = 'postgres-durability';
  if (off.length === 0) return ok(name, 'what is committed survives a crash');
  return failed(
    name,
    `${off.join(', ')} ${off.length === 1 ? 'is' : 'are'} off`,
    'A crash of that machine loses notifications that were answered 201. Set them on, unless all of it is for tests.',
  );
}

/** To migrate and to make a partition for each day, it owns its tables and makes new ones. */
async function permissions(client: pg.Client): Promise<Finding> {
  const row = await only<{ role: string; schema: string | null; create: boolean; foreign: string[] }>(
    client,
    `SELECT current_user AS role, current_schema() AS schema,
            coalesce(has_schema_privilege(current_user, current_schema(), 'CREATE'), false) AS create,
            ARRAY(SELECT relname::text FROM pg_class
                  WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
                    AND (relname IN ('notification', 'delivery', 'attempt', 'process', 'migrations', 'subscription')
                         OR relname ~ '^(notification|delivery|attempt)_[0-9]{8}$')
                    AND NOT pg_has_role(current_user, relowner, 'USAGE')
                  ORDER BY relname LIMIT 5) AS foreign`,
  );
  const name = 'postgres-permissions';
  if (row.schema === null) {
    return failed(
      name,
      `role ${row.role} has no schema it may use`,
      `GRANT USAGE, CREATE ON SCHEMA public TO ${row.role}`,
    );
  }
  if (!row.create) {
    return failed(
      name,
      `role ${row.role} may not make tables in schema ${row.schema}`,
      `GRANT USAGE, CREATE ON SCHEMA ${row.schema} TO ${row.role}; without it no partition is made for the next days.`,
    );
  }
  if (row.foreign.length > 0) {
    return failed(
      name,
      `role ${row.role} does not own ${row.foreign.join(', ')}`,
      `ALTER TABLE … OWNER TO ${row.role}, or GRANT the owner’s role to it: migrations and retention change these tables.`,
    );
  }
  return ok(name, `role ${row.role} owns its tables and may make more`);
}

/** Seconds. Heraut follows Postgres' clock, for tokens too. */
const [muchApart, tooFarApart] = [2, 60];

async function clock(client: pg.Client): Promise<Finding> {
  const sentAt = Date.now();
  const { now } = await only<{ now: string }>(client, `SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now`);
  const apart = (Number(now) - (sentAt + Date.now()) / 2) / 1000;
  const found = `Postgres’ clock is ${Math.abs(apart).toFixed(2)} s ${apart < 0 ? 'behind' : 'ahead of'} this machine’s`;
  const advice =
    'Run NTP on both. Tokens made by a machine whose clock is ahead are refused, and the times in logs do not fit.';
  if (Math.abs(apart) > tooFarApart) return failed('clock', found, advice);
  return Math.abs(apart) > muchApart ? warning('clock', found, advice) : ok('clock', found);
}

const isThere = async (client: pg.Client, table: string): Promise<boolean> =>
  (await only<{ there: boolean }>(client, `SELECT to_regclass('${table}') IS NOT NULL AS there`)).there;

async function migrated(client: pg.Client): Promise<Finding> {
  const elsewhere = await tablesElsewhere(askOf(client));
  if (elsewhere) return failed('migrations', elsewhere.found, elsewhere.advice);
  if (!(await isThere(client, 'migrations')))
    return warning('migrations', 'the database is empty', 'Start Heraut: the first process makes its tables.');
  const { rows } = await client.query<{ name: string }>('SELECT name FROM migrations');
  const run = new Set(rows.map(({ name }) => name));
  const missing = migrationNames.filter((name) => !run.has(name));
  const unknown = rows.length - (migrationNames.length - missing.length);
  if (unknown > 0) {
    return warning('migrations', `${unknown} have run that this version does not know`, remedyOfNewer);
  }
  if (missing.length === 0) return ok('migrations', `all ${migrationNames.length} have run`);
  return warning(
    'migrations',
    `${missing.length} have not run: ${missing.join(', ')}`,
    'Restart one process of this version: it migrates.',
  );
}

const consequences: Record<Role, string> = {
  api: 'nothing is accepted',
  worker: 'nothing is delivered',
  dispatcher: 'nothing is retried',
};

async function processes(client: pg.Client): Promise<Finding> {
  if (!(await isThere(client, 'process'))) return skipped('processes', 'the database is empty');
  const { rows } = await client.query<{ role: Role; count: number }>(
    'SELECT role, count(*)::int AS count FROM process, unnest(roles) AS role WHERE expires_at > now() GROUP BY role',
  );
  const counts = new Map(rows.map(({ role, count }) => [role, count]));
  const roles = Object.keys(consequences) as Role[];
  const found = roles.map((role) => `${counts.get(role) ?? 0} × ${role}`).join(', ');
  const missing = roles.filter((role) => !counts.has(role));
  if (missing.length === 0) return ok('processes', `alive: ${found}`);
  const lacking = missing.map((role) => `${consequences[role]} without ${role}`).join('; ');
  return failed('processes', `alive: ${found}`, `${lacking}. Start a process with ROLES=${missing.join()}.`);
}

/** How many workers were found to be, whatever other role is missing. None, also where that is not known. */
export function workersAlive(findings: readonly Finding[]): number {
  const { found = '' } = findings.find(({ name }) => name === 'processes') ?? {};
  return Number(/\b(\d+) × worker\b/.exec(found)?.[1] ?? 0);
}

const askOf =
  (client: pg.Client): Ask =>
  async <Row>(text: string) =>
    (await client.query(text)).rows as Row[];

async function only<Row extends pg.QueryResultRow>(client: pg.Client, text: string): Promise<Row> {
  return (await client.query<Row>(text)).rows[0]!;
}
