import { isDeadlock } from './postgres-errors.js';

/** Each time one of the transactions involved goes on, so a handful of tries is enough for any that is not starved. */
const maxTries = 5;

/**
 * Repeats work that Postgres ended because it and others waited for each other's rows: a statement or a transaction,
 * which has then changed nothing. `work` must therefore change nothing but the database.
 * @throws the deadlock after the fifth try, and every other error at once
 */
export async function retryDeadlocks<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!isDeadlock(error) || tries === maxTries) throw error;
    }
  }
}
