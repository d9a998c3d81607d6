import type pg from 'pg';
import type { DataSource, DataSourceOptions } from 'typeorm';
import type { EmbeddedCrash } from './embedded-crash.js';

/** A database that is open, real or embedded, as `Postgres` needs it. */
export interface OpenDatabase {
  dataSource: DataSource;
  /** Embedded, the same as `dataSource`. */
  upkeep: DataSource;
  /** For health checks alone. Embedded, the same as `dataSource`. */
  checks: DataSource;
  /** For the statements of the hot path. */
  pool: pg.Pool;
  isEmbedded: boolean;
  /** An error of the start, for an operator. */
  explain: (error: unknown) => unknown;
  /** Embedded alone: resolves when it can be used no more. */
  crashed?: Promise<EmbeddedCrash>;
  /** After `dataSource` was destroyed. */
  close: () => Promise<void>;
}

/** The options of both kinds for TypeORM. */
export type CommonOptions = Pick<DataSourceOptions, 'entities' | 'migrations'> & {
  type: 'postgres';
};

export const poolOf = (source: DataSource): pg.Pool => (source.driver as unknown as { master: pg.Pool }).master;
