import type { JsonLogger } from './infra/logging/json-logger.js';
import type { Postgres } from './infra/postgres/postgres.js';

/**
 * Ends this program with status 1, and says why, where the embedded database has crashed: nothing can be read or
 * written any more, and only a new start mends it. Nothing is waited for: the ledger has all that was in hand.
 */
export function endAfterCrash({ crashed }: Pick<Postgres, 'crashed'>, logger: JsonLogger): void {
  void crashed?.then(async (error) => {
    logger.error({ event: 'postgres.crashed', error });
    await logger.flush();
    process.exit(1);
  });
}
