import { PGlite } from '@electric-sql/pglite';
import { createPgConfig } from '@electric-sql/pglite/node-postgres';
import { join } from 'node:path';
import pg from 'pg';
import { DataSource, type DataSourceOptions, type EntitySchema } from 'typeorm';
import { migrations } from '../../../migrations/index.js';
import type { Settings } from '../../config/settings.js';
import { lockDirectory } from './directory-lock.js';
import { isDeadlock, isUnanswered } from './postgres-errors.js';
import { valuesOf, type Statement, type Values } from './statement.js';

export type Row = Record<string, unknown>;

/** Of a statement that runs into deadlocks: each time one of the statements involved goes on. */
const maxTries = 5;

/** Runs a statement and returns its rows. */
export type Query = <R extends pg.QueryResultRow>(statement: Statement, values?: Values) => Promise<R[]>;

/** Ten times what a busy process needs between two statements. */
const idleInTransactionMs = 10_000;

/**
 * The ledger's database, real or embedded. `query` is for the hand-written statements of the hot path; TypeORM's
 * `dataSource` serves the rest. On a real server they have separate pools, so that an operator's slow query cannot use up
 * the connections that accept and deliver. Embedded there is one connection for everything: inside a transaction only
 * ever use the transaction's manager, or it waits for itself.
 */
export class Postgres {
  private constructor(
    readonly dataSource: DataSource,
    private readonly pool: pg.Pool,
    readonly isEmbedded: boolean,
    private readonly closeServer: () => Promise<void>,
  ) {}

  static async open(settings: Settings, entities: (Function | EntitySchema)[]): Promise<Postgres> {
    const common = {
      type: 'postgres',
      entities,
      migrations,
      migrationsTransactionMode: 'each',
      logging: false,
    } as const;
    if (settings.DATABASE_URL) {
      const extra = {
        max: settings.DATABASE_POOL_SIZE,
        connectionTimeoutMillis: 5000,
        application_name: 'heraut',
        // A process that is frozen in the middle of a transaction must not keep others waiting for its rows for ever.
        idle_in_transaction_session_timeout: idleInTransactionMs,
      };
      const dataSource = new DataSource({ ...common, url: settings.DATABASE_URL, extra } as DataSourceOptions);
      const pool = new pg.Pool({
        ...extra,
        connectionString: settings.DATABASE_URL,
        // A server that is frozen, not down, must not leave a publisher without an answer.
        query_timeout: settings.DATABASE_TIMEOUT * 1000,
        onConnect: (client) => client.query(preferIndexes),
        // Statements that are prepared for one day each (src/ledger/per-day.ts) would pile up in a connection that lives for months.
        maxLifetimeSeconds: 3600,
      });
      // Without a listener an idle connection that dies (a restart of Postgres) would end the process.
      pool.on('error', ignore);
      await dataSource.initialize();
      return new Postgres(dataSource, pool, false, () => pool.end());
    }
    const unlock = lockDirectory(settings.DATA_DIR);
    const pglite = await PGlite.create(join(settings.DATA_DIR, 'pglite'));
    const extra = { ...createPgConfig(pglite), max: 1, idleTimeoutMillis: 0, connectionTimeoutMillis: 30_000 };
    const dataSource = new DataSource({ ...common, extra } as DataSourceOptions);
    await dataSource.initialize();
    await pglite.exec(preferIndexes);
    const pool = (dataSource.driver as unknown as { master: pg.Pool }).master;
    return new Postgres(dataSource, pool, true, async () => {
      await pglite.close();
      unlock();
    });
  }

  /** Runs the migrations that have not run yet. Several processes may call it at once: one migrates, the others wait. */
  async migrate(): Promise<string[]> {
    if (this.isEmbedded) return this.runMigrations(); // no other process can open this database
    const queryRunner = this.dataSource.createQueryRunner();
    try {
      // The number is arbitrary; it only has to be the same in every process.
      await queryRunner.query('SELECT pg_advisory_lock(727272)');
      return await this.runMigrations();
    } finally {
      await queryRunner.query('SELECT pg_advisory_unlock(727272)');
      await queryRunner.release();
    }
  }

  private async runMigrations(): Promise<string[]> {
    return (await this.dataSource.runMigrations()).map((migration) => migration.name);
  }

  async hasPendingMigrations(): Promise<boolean> {
    return this.dataSource.showMigrations();
  }

  async query<R = Row>(statement: Statement, values: Values = {}): Promise<R[]> {
    return (await this.run(statement, values)).rows as R[];
  }

  /** How many rows the statement changed. */
  async affected(statement: Statement, values: Values = {}): Promise<number> {
    return (await this.run(statement, values)).rowCount ?? 0;
  }

  /** Several statements on one connection, all or nothing. Use nothing but `query` inside: see above. */
  async transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return this.withClient(async (client) => {
      try {
        await client.query('BEGIN');
        const query: Query = async (statement, values = {}) => (await client.query(prepared(statement, values))).rows;
        const result = await work(query);
        await client.query('COMMIT');
        return result;
      } catch (error) {
        // A connection that cannot even roll back must not go back into the pool.
        await client.query('ROLLBACK').catch(() => client.end());
        throw error;
      }
    });
  }

  /** A statement outside a transaction has changed nothing when a deadlock ends it, so it is repeated. */
  private async run(statement: Statement, values: Values): Promise<pg.QueryResult> {
    const query = prepared(statement, values);
    for (let tries = 1; ; tries++) {
      try {
        return await this.withClient((client) => client.query(query));
      } catch (error) {
        if (!isDeadlock(error) || tries === maxTries) throw error;
      }
    }
  }

  /**
   * Not `pool.query`: that closes the connection after every statement that is refused. A new one costs the server a
   * process, and the embedded database has only this one: the next statement would fail with it, or the whole process end.
   */
  private async withClient<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    // When a connection dies, its statement fails; without a listener the process would end as well.
    client.on('error', ignore);
    let isStuck = false;
    try {
      return await work(client);
    } catch (error) {
      isStuck = isUnanswered(error);
      throw error;
    } finally {
      client.off('error', ignore);
      client.release(isStuck); // one that broke does not go back, nor one that still waits for an answer
    }
  }

  async close(): Promise<void> {
    if (this.dataSource.isInitialized) await this.dataSource.destroy();
    await this.closeServer();
  }
}

/**
 * Settings of a connection of the hot path. Each of its statements touches a few rows by key. A plan made while a table was
 * still empty would scan it whole, and stay cached after it has grown; and deliveries that are due must be read in the order of
 * the index, not collected and sorted each time they are handed out. A plan node that is switched off but has no alternative
 * costs 10^10 (Postgres before 18), for which every such statement would be compiled, half a second long: hence no JIT.
 */
export const preferIndexes = ['enable_seqscan', 'enable_bitmapscan', 'enable_hashjoin', 'enable_mergejoin', 'jit']
  .map((way) => `SET ${way} = off`)
  .join('; ');

const prepared = (statement: Statement, values: Values): pg.QueryConfig => ({
  name: statement.edition === undefined ? statement.name : `${statement.name} ${statement.edition}`,
  text: statement.text,
  values: valuesOf(statement, values),
});

function ignore(): void {}
