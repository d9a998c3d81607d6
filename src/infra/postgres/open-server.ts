import pg from 'pg';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { endChecksSoon } from './checks.js';
import { ClosingClient } from './closing-client.js';
import { explainPostgres, orSayWhyNot } from './connection-advice.js';
import { poolOf, type CommonOptions, type OpenDatabase } from './open-database.js';
import { orMarkNotConnected } from './not-connected.js';
import { countPools } from './postgres.metrics.js';
import { poolingUnfit } from './pooled-by-transaction.js';
import { asOnHotPath, noOtherLimits, ordinarySettings, withoutJit } from './session-settings.js';
import { asConnectionOptions, upkeepLimits, type TimeLimits } from './time-limits.js';
import { TimedOutLogger } from './timed-out.js';
import { encodingUnfit, refuseUnfit, visibilityUnfit, type Ask, type Unfit } from './unfit.js';

/** One migrates or makes partitions, and one waits for its turn. */
const upkeepConnections = 2;

/**
 * Postgres looks every two seconds whether the process is still there. By itself it does so when a statement ends: it
 * would go on with an index that takes minutes, and keep its lock, after the process was killed. On a few systems it
 * cannot look, and refuses the setting.
 */
const endWithProcess = `DO $$ BEGIN SET client_connection_check_interval = 2000;
  EXCEPTION WHEN invalid_parameter_value THEN NULL; END $$`;

/**
 * The other way round, of upkeep: a machine that vanishes closes nothing, and would keep the turn to migrate until the
 * operating system of Postgres asks after it, for two hours. Over a Unix socket Postgres ignores it.
 */
const askAfterMachine = 'SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3';

/** A connection is not silent for so long that a firewall forgets it: idle, or while a statement takes minutes. */
const keptAlive = { keepAlive: true, keepAliveInitialDelayMillis: 60_000 };
/** A connection that is opened once (docs/decisions/0066). */
const stayingOpen = { idleTimeoutMillis: 0, ...keptAlive };

/**
 * @param max connections of each of the two large pools
 * @throws {CannotConnect} where the server is not reached, or lets nobody in
 */
export async function openServer(
  url: string,
  max: number,
  limits: TimeLimits,
  common: CommonOptions,
): Promise<OpenDatabase> {
  const connection = { connectionTimeoutMillis: 5000, application_name: 'heraut', Client: ClosingClient };
  const dataSourceWith = (kept: TimeLimits, size: number, own: object = {}, entities = common.entities, also = '') => {
    const onConnect = setting(`${withoutJit}; ${also}`);
    const extra = { ...connection, ...own, ...asConnectionOptions(kept), max: size, onConnect };
    return new DataSource({ ...common, entities, url, extra, logger: new TimedOutLogger(kept) } as DataSourceOptions);
  };
  const pool = new pg.Pool({
    ...connection,
    ...asConnectionOptions(limits),
    max,
    connectionString: url,
    onConnect: setting(asOnHotPath),
    // Statements that are prepared for one day each (src/ledger/per-day.ts) would pile up in a connection that lives
    // for months.
    maxLifetimeSeconds: 3600,
    ...stayingOpen, // until then
  });
  // Without a listener an idle connection that dies (a restart of Postgres) would end the process.
  pool.on('error', () => {});
  // Under a name of its own: a transaction of an hour, in which no notification is written.
  const upkeepOwn = { application_name: 'heraut-upkeep', ...keptAlive };
  const whileThere = `${endWithProcess}; ${askAfterMachine}`;
  const upkeep = dataSourceWith(upkeepLimits, upkeepConnections, upkeepOwn, common.entities, whileThere);
  const dataSource = dataSourceWith(limits, max);
  const checks = dataSourceWith(limits, 1, stayingOpen, [], endChecksSoon(limits));
  const all = [dataSource, upkeep, checks];
  const end = async () => {
    await Promise.all(all.filter((source) => source.isInitialized).map((source) => source.destroy()));
    await pool.end();
  };
  try {
    await orSayWhyNot(Promise.all(all.map((source) => source.initialize())));
    const ask: Ask = (text) => upkeep.query(text);
    await orSayWhyNot(refuseUnfit(encodingUnfit(ask)));
    await orSayWhyNot(refuseUnfit(visibilityUnfit(ask)));
    await orSayWhyNot(refuseUnfit(poolingBetween(checks, upkeep)));
  } catch (error) {
    await end();
    throw error;
  }
  const uncount = countPools({ hot: pool, rest: poolOf(dataSource), upkeep: poolOf(upkeep), checks: poolOf(checks) });
  return {
    dataSource,
    upkeep,
    checks,
    pool,
    isEmbedded: false,
    explain: explainPostgres,
    close: async () => {
      uncount();
      await end();
    },
  };
}

/** Gives a new connection its settings, before anybody has it. */
const setting = (own: string) => (client: pg.ClientBase) =>
  orMarkNotConnected(client.query(`${ordinarySettings}; ${noOtherLimits}; ${own}`));

/** On a connection of each. */
async function poolingBetween(one: DataSource, other: DataSource): Promise<Unfit | undefined> {
  const [idle, busy] = [one.createQueryRunner(), other.createQueryRunner()];
  try {
    return await poolingUnfit(
      (text) => idle.query(text),
      (text) => busy.query(text),
    );
  } finally {
    await Promise.all([idle.release(), busy.release()]);
  }
}
