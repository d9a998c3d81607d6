import type { Postgres, Query } from './postgres.js';
import { preferIndexes } from './session-settings.js';
import { queryOf } from './query-of.js';

/**
 * Statements that read much, in a short transaction, through TypeORM's pool: on no connection of the hot path, and with
 * the plans that those get. Embedded there is one connection for everything, so others wait until it ends.
 */
export const readAside = <T>(postgres: Postgres, work: (query: Query) => Promise<T>): Promise<T> =>
  postgres.dataSource.transaction(async (manager) => {
    await manager.query(preferIndexes.replaceAll('SET ', 'SET LOCAL '));
    return work(queryOf(manager));
  });
