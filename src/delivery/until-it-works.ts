import { Logger } from '@nestjs/common';
import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { isDataError } from '../infra/postgres/postgres-errors.js';

const firstPauseMs = 50;
const longestPauseMs = 2000;
const logger = new Logger('Delivery');

/**
 * Our own trouble never costs a subscriber an attempt: work waits here, holding its place, until Postgres and Redis
 * answer again, so that no more is taken meanwhile. Undefined when `stopping` comes first.
 * @throws what no repetition can mend
 */
export async function untilItWorks<T>(work: () => Promise<T>, stopping: AbortSignal): Promise<T | undefined> {
  for (let pauseMs = firstPauseMs; !stopping.aborted; pauseMs = Math.min(longestPauseMs, pauseMs * 2)) {
    try {
      return await work();
    } catch (error) {
      if (isDataError(error)) throw error;
      logger.warn({ event: 'delivery.postponed', pauseMs, error });
      // Everything a worker has in hand waits for this one signal: hundreds of listeners are no leak here.
      setMaxListeners(0, stopping);
      await pause(pauseMs, undefined, { signal: stopping }).catch(() => {}); // stopping ends it early
    }
  }
  return undefined;
}
