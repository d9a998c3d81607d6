import type { EntityManager } from 'typeorm';

/**
 * Postgres' time, for what a change stores: the clock of this machine may be wrong, and the times that it is compared
 * with are Postgres'. Not now(): that is when the transaction began, before it waited for other changes.
 */
export async function timeIn(transaction: Pick<EntityManager, 'query'>): Promise<Date> {
  const [row] = (await transaction.query('SELECT clock_timestamp() AS at')) as { at: Date }[];
  return row!.at;
}
