import { vi } from 'vitest';
import type { Pool } from 'pg';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import { statement } from '../../src/infra/postgres/statement.js';
import { Clock } from '../../src/infra/clock.js';

const setTime = statement('set-time', 'UPDATE model.time SET ms = $ms');
/** Shorter than what counts as standing still. */
const stepMs = 125;
/** A time that no other clock can be confused with. */
const beginning = Date.UTC(2030, 0, 7, 12);

/** One time for Node's timers, the injected clock and Postgres. It passes only when it is told to. */
export class VirtualTime extends Clock {
  private ms = beginning;
  private constructor(private readonly postgres: Postgres) {
    super();
  }

  /**
   * Has the statements' `now()` mean this time: names are looked up in the schema `model` first. Only for a database
   * whose tables are there already, and whose connections are opened afterwards; the embedded one has but one.
   */
  static async install(postgres: Postgres): Promise<void> {
    const { dataSource } = postgres;
    await dataSource.query('CREATE SCHEMA model');
    await dataSource.query('CREATE TABLE model.time (ms bigint NOT NULL)');
    await dataSource.query(`INSERT INTO model.time VALUES (${beginning})`);
    for (const name of ['now', 'clock_timestamp']) {
      await dataSource.query(
        `CREATE FUNCTION model.${name}() RETURNS timestamptz STABLE LANGUAGE sql
         AS 'SELECT to_timestamp(ms / 1000.0) FROM model.time'`,
      );
    }
    await giveTimeByDefault(postgres);
    const path = 'search_path = model, pg_catalog, public';
    if (postgres.isEmbedded) await dataSource.query(`SET ${path}`);
    else {
      const [{ name }] = (await dataSource.query('SELECT current_database() AS name')) as [{ name: string }];
      await dataSource.query(`ALTER DATABASE ${name} SET ${path}`);
    }
  }

  /**
   * Tables that were made meanwhile belong to the schema of the others: they were made in the first one of the path.
   */
  static async adoptTables({ dataSource }: Postgres): Promise<void> {
    const tables = (await dataSource.query(
      `SELECT oid::regclass::text AS name FROM pg_class
       WHERE relnamespace = 'model'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'time'`,
    )) as { name: string }[];
    for (const { name } of tables) await dataSource.query(`ALTER TABLE ${name} SET SCHEMA public`);
  }

  /** From here on timers wait for `pass`. No time passes between two of its calls. */
  static begin(postgres: Postgres): VirtualTime {
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance', 'hrtime'],
      now: beginning,
    });
    // No connection is idle for long in truth, and a new one takes its time.
    (Reflect.get(postgres, 'pool') as Pool).options.idleTimeoutMillis = 0;
    return new VirtualTime(postgres);
  }

  now(): number {
    return this.ms;
  }

  pause(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      setTimeout(resolve, ms);
      signal?.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  /** Forgets the timers that still wait. The time itself stays: a database does not survive a time that goes back. */
  forget(): void {
    vi.clearAllTimers();
  }

  async pass(ms: number): Promise<void> {
    await this.postgres.query(setTime, { ms: this.ms + ms });
    // In steps, as it passes for a process that runs: one that finds itself much later stood still, and takes no such
    // time for a receiver's (src/infra/running-time.ts).
    for (let left = ms; left > 0; left -= stepMs) {
      const step = Math.min(left, stepMs);
      this.ms += step;
      vi.advanceTimersByTime(step);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** A default of a column is the function that its name meant when the table was made: the true time. */
async function giveTimeByDefault({ dataSource }: Postgres): Promise<void> {
  const columns = (await dataSource.query(
    `SELECT c.oid::regclass::text AS "table", a.attname AS name FROM pg_attrdef d JOIN pg_class c ON c.oid = d.adrelid
     JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
     WHERE NOT c.relispartition AND pg_get_expr(d.adbin, d.adrelid) IN ('now()', 'clock_timestamp()')`,
  )) as { table: string; name: string }[];
  for (const { table, name } of columns)
    await dataSource.query(`ALTER TABLE ${table} ALTER COLUMN ${name} SET DEFAULT model.now()`);
}
