import type { LoggerService } from '@nestjs/common';
import type pg from 'pg';
import type { DataSource, EntityManager, EntitySchema } from 'typeorm';
import { migrations } from '../../../migrations/index.js';
import type { Settings } from '../../config/settings.js';
import { Checks } from './checks.js';
import { markCommit } from './commit-in-doubt.js';
import { orSayWhyNot } from './connection-advice.js';
import { connectionTurns } from './connection-turns.js';
import { migrationNames } from './migration-names.js';
import { inMigrationTurn, inMigrationTurnWithin } from './migration-turn.js';
import { poolOf, type OpenDatabase } from './open-database.js';
import { openEmbedded } from './open-embedded.js';
import { openServer } from './open-server.js';
import { isDiskFull } from './postgres-errors.js';
import { retryDeadlocks } from './retry-deadlocks.js';
import { runMigrations } from './run-migrations.js';
import { valuesOf, type Statement, type Values } from './statement.js';
import { asOnHotPath } from './session-settings.js';
import { limitsOf, type TimeLimits } from './time-limits.js';
import { reportTimedOut } from './timed-out.js';
import { refuseUnfit, tablesElsewhere } from './unfit.js';

export type Row = Record<string, unknown>;

/** Runs a statement and returns its rows. */
export type Query = <R = Row>(statement: Statement, values?: Values) => Promise<R[]>;

/**
 * The ledger's database, real or embedded. `query` is for the hand-written statements of the hot path; TypeORM's
 * `dataSource` serves the rest. On a real server they have separate pools, so that an operator's slow query cannot use
 * up the connections that accept and deliver. Embedded there is one connection for everything: inside a transaction
 * only ever use the transaction's manager, or it waits for itself.
 *
 * On a real server every statement has a time limit, which the server keeps to and the client watches over
 * (docs/decisions/0020). The embedded one runs in this process' only thread and has none.
 */
export class Postgres {
  /** When something did not fit on its disk the last time, as `performance.now()` tells it. */
  diskFullAt = -Infinity;

  readonly dataSource: DataSource;
  /** For work that may take minutes: migrations, partitions. Embedded, the same as `dataSource`. */
  readonly upkeep: DataSource;
  /** For health checks alone, with a limit of two seconds on the server. Embedded, on the one connection. */
  readonly checks: Checks;
  readonly isEmbedded: boolean;
  /**
   * An error of the start, for an operator where the database is the cause and can be mended; any other one as it is.
   */
  readonly explain: (error: unknown) => unknown;
  /** Of the embedded one: resolves when it can be used no more. All statements fail from then on. */
  readonly crashed: OpenDatabase['crashed'];
  /** For those on whose behalf requests use `dataSource`. */
  readonly turns: ReturnType<typeof connectionTurns>;
  /** After which a statement is given up that got no answer. */
  readonly longestAnswerMs: number;
  private readonly pool: pg.Pool;
  private readonly closeServer: () => Promise<void>;

  private constructor(
    { dataSource, upkeep, checks, pool, isEmbedded, explain, crashed, close }: OpenDatabase,
    private readonly limits: TimeLimits,
  ) {
    this.dataSource = dataSource;
    this.upkeep = upkeep;
    this.checks = new Checks(checks, pool, limits);
    this.pool = pool;
    this.longestAnswerMs = limits.answer;
    const { max, connectionTimeoutMillis: longestMs = 0 } = poolOf(dataSource).options;
    this.turns = connectionTurns(max, longestMs); // as long as one waits for a connection
    this.isEmbedded = isEmbedded;
    this.explain = explain;
    this.crashed = crashed;
    this.closeServer = close;
  }

  /** @throws {CannotConnect} where the server is not reached, or lets nobody in, or `DATA_DIR` is of no use */
  static async open(settings: Settings, entities: (Function | EntitySchema)[]): Promise<Postgres> {
    const common = { type: 'postgres', entities, migrations } as const;
    const limits = limitsOf(settings.DATABASE_TIMEOUT * 1000);
    const { DATABASE_URL: url, DATABASE_POOL_SIZE: max, DATA_DIR: directory } = settings;
    const opened = url ? openServer(url, max, limits, common) : openEmbedded(directory, common);
    return new Postgres(await opened, limits);
  }

  /**
   * Runs the migrations that have not run yet. Several processes may call it at once: one migrates, the others wait.
   * @param logger is told of each migration, before and after
   * @throws {CannotConnect} where its tables are found in another schema, among others
   */
  async migrate(logger?: Pick<LoggerService, 'log'>): Promise<string[]> {
    if (this.isEmbedded) return runMigrations(this.upkeep, logger); // no other process can open this database
    return orSayWhyNot(inMigrationTurn(this.upkeep, () => this.migrateServer(logger)));
  }

  /**
   * As `migrate`, for a program that is soon run again.
   * @param longestMs it waits so long: every process that starts has the turn for a moment
   * @returns false while another process has the turn: one that migrates, or that moves everything to this database
   */
  async migrateUnlessAnotherDoes(logger?: Pick<LoggerService, 'log'>, longestMs = 2000): Promise<boolean> {
    if (!this.isEmbedded) {
      return orSayWhyNot(inMigrationTurnWithin(longestMs, this.upkeep, () => this.migrateServer(logger)));
    }
    await runMigrations(this.upkeep, logger);
    return true;
  }

  private async migrateServer(logger?: Pick<LoggerService, 'log'>): Promise<string[]> {
    await refuseUnfit(tablesElsewhere((text) => this.upkeep.query(text)));
    const ran = await runMigrations(this.upkeep, logger);
    await this.tryWriting(this.upkeep); // nothing else may have been written so far
    return ran;
  }

  /** Changes nothing, and fails where nothing can be written: a standby answers everything else. For health checks. */
  async tryWriting(on: Pick<DataSource, 'query'> | Checks = this.checks): Promise<void> {
    await on.query('DELETE FROM migrations WHERE false');
  }

  /**
   * For health checks. Not by TypeORM's `showMigrations`: where that fails it keeps its connection, and there is only
   * one.
   */
  async hasPendingMigrations(): Promise<boolean> {
    const ran = 'SELECT DISTINCT name FROM migrations WHERE name = ANY ($1)';
    return (await this.checks.query<object[]>(ran, [migrationNames])).length < migrationNames.length;
  }

  async query<R = Row>(statement: Statement, values: Values = {}): Promise<R[]> {
    return (await this.run(statement, values)).rows as R[];
  }

  /**
   * As `query`, on a connection of `dataSource`: for what people ask, which must not take one from those that accept
   * and deliver. Only for a SELECT: of an UPDATE or DELETE TypeORM does not return the rows alone.
   */
  queryAside<R = Row>(statement: Statement, values: Values = {}): Promise<R[]> {
    return this.dataSource.query<R[]>(statement.text, valuesOf(statement, values));
  }

  /** How many rows the statement changed. */
  async affected(statement: Statement, values: Values = {}): Promise<number> {
    return (await this.run(statement, values)).rowCount ?? 0;
  }

  /**
   * Several statements on one connection, all or nothing. Use nothing but `query` inside: see above. After a deadlock
   * `work` runs again from its beginning.
   */
  async transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return retryDeadlocks(() => this.withClient((client) => this.inTransaction(client, work)));
  }

  /** As `transaction`, for work with entities. */
  entityTransaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return retryDeadlocks(async () => {
      let isToCommit = false;
      try {
        return await this.dataSource.transaction(async (manager) => {
          const result = await work(manager);
          isToCommit = true;
          return result;
        });
      } catch (error) {
        if (isToCommit) markCommit(error);
        throw error;
      }
    });
  }

  /**
   * As `transaction`, with the same plans, on a connection of `dataSource`: for work in the background, which must not
   * take one from those that accept and deliver.
   */
  async transactionAside<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const asideWork = (client: pg.PoolClient) =>
      this.inTransaction(client, async (query) => {
        await client.query(asOnHotPath.replaceAll('SET ', 'SET LOCAL '));
        return work(query);
      });
    return retryDeadlocks(() => this.withClient(asideWork, poolOf(this.dataSource)));
  }

  /**
   * Gives back the statements that the embedded database has prepared: those of past days (src/ledger/per-day.ts) would
   * pile up in its one connection, half a megabyte a day. On a real server connections end after an hour. A statement
   * that is needed is prepared again.
   */
  async forgetStatements(): Promise<void> {
    if (!this.isEmbedded) return;
    await this.withClient(async (client) => {
      await client.query('DEALLOCATE ALL');
      // pg keeps account of what it has prepared, and would not do so again.
      (client as unknown as { connection: { parsedStatements: object } }).connection.parsedStatements = {};
    });
  }

  private async inTransaction<T>(client: pg.PoolClient, work: (query: Query) => Promise<T>): Promise<T> {
    try {
      await this.execute(client, { text: 'BEGIN' }, 'BEGIN');
      const query: Query = async (statement, values = {}) =>
        (await this.execute(client, prepared(statement, values), statement.name)).rows;
      const result = await work(query);
      await this.commit(client);
      return result;
    } catch (error) {
      // A connection that cannot even roll back must not go back into the pool.
      await client.query('ROLLBACK').catch(() => client.end());
      throw error;
    }
  }

  private async commit(client: pg.PoolClient): Promise<void> {
    try {
      await this.execute(client, { text: 'COMMIT' }, 'COMMIT');
    } catch (error) {
      markCommit(error);
      throw error;
    }
  }

  /** A statement outside a transaction has changed nothing when a deadlock ends it, so it is repeated. */
  private async run(statement: Statement, values: Values): Promise<pg.QueryResult> {
    const query = prepared(statement, values);
    return retryDeadlocks(() => this.withClient((client) => this.execute(client, query, statement.name)));
  }

  /** @param name in logs and counters, where a statement of each day would be another one each day */
  private async execute(client: pg.PoolClient, query: pg.QueryConfig, name: string): Promise<pg.QueryResult> {
    try {
      return await client.query(query);
    } catch (error) {
      if (isDiskFull(error)) this.diskFullAt = performance.now();
      reportTimedOut(error, this.limits, name);
      throw error;
    }
  }

  /**
   * Not `pool.query`: that closes the connection after every statement that is refused. A new one costs the server a
   * process, and the embedded database has only this one: the next statement would fail with it, or the whole process
   * end.
   */
  private async withClient<T>(work: (client: pg.PoolClient) => Promise<T>, pool = this.pool): Promise<T> {
    const client = await pool.connect();
    // When a connection dies, its statement fails; without a listener the process would end as well.
    client.on('error', ignore);
    try {
      return await work(client);
    } finally {
      client.off('error', ignore);
      client.release(); // one that broke, or was closed for want of an answer, does not go back
    }
  }

  async close(): Promise<void> {
    if (this.dataSource.isInitialized) await this.dataSource.destroy();
    await this.closeServer();
  }
}

const prepared = (statement: Statement, values: Values): pg.QueryConfig => ({
  name: statement.edition === undefined ? statement.name : `${statement.name} ${statement.edition}`,
  text: statement.text,
  values: valuesOf(statement, values),
});

function ignore(): void {}
