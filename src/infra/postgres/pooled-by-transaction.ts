import type { Ask, Unfit } from './unfit.js';

const pidOf = async (ask: Ask): Promise<number> =>
  (await ask<{ pid: number }>('SELECT pg_backend_pid() AS pid'))[0]!.pid;

/**
 * A pooler that gives each transaction another connection: named statements may work behind it all the same, but the
 * locks and settings of a session get lost, or stay on a connection of somebody else. Between two transactions `idle`
 * has no connection there: `busy` gets that one, or `idle` another one afterwards.
 * @param idle a connection on which no transaction is open
 * @param busy another one
 */
export async function poolingUnfit(idle: Ask, busy: Ask): Promise<Unfit | undefined> {
  const before = await pidOf(idle);
  await busy('BEGIN');
  try {
    if ((await pidOf(busy)) !== before && (await pidOf(idle)) === before) return undefined;
    return { found: 'its connections change from one transaction to the next', advice: pooledByTransaction };
  } finally {
    await busy('ROLLBACK');
  }
}

export const pooledByTransaction =
  'A pooler such as PgBouncer gives each transaction another connection, and Heraut needs its own for its statements, settings and locks: set pool_mode = session, or point DATABASE_URL at Postgres itself.';
