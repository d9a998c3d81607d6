import { Logger } from '@nestjs/common';
import type { Clock } from '../infra/clock.js';
import { LogSamples } from '../infra/logging/log-samples.js';
import { isDataError } from '../infra/postgres/postgres-errors.js';

const firstPauseMs = 50;
const longestPauseMs = 2000;
const loggedEveryMs = 1000;
const logger = new Logger('Delivery');
/**
 * By clock: a process has one. Everything that waits does so for the same reason, a hundred pieces of work at a time.
 */
const samples = new WeakMap<Clock, LogSamples>();

/**
 * Why the work on a delivery ends unfinished: its process stops, or its chunk is back in the queue. It is left to
 * another process.
 */
export class Stopping extends Error {}

/**
 * Trouble of Postgres or Redis costs a subscriber no attempt: the work is repeated until they answer again. Its
 * delivery keeps its place meanwhile, so that the worker has no more in flight than it may. Work that begins while the
 * process is stopping is tried once: an outcome that is known then is still written if it can be.
 * @throws {Stopping} when the process stops before it works
 * @throws an error that no repetition can mend
 */
export async function untilItWorks<T>(work: () => Promise<T>, clock: Clock, stopping: AbortSignal): Promise<T> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 2)) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Stopping || isDataError(error)) throw error;
      logPostponed(clock, pauseMs, error);
      await clock.pause(pauseMs, stopping);
      stopping.throwIfAborted();
    }
  }
}

function logPostponed(clock: Clock, pauseMs: number, error: unknown): void {
  const sampled = samples.get(clock) ?? new LogSamples(loggedEveryMs, () => clock.now());
  samples.set(clock, sampled);
  const postponed = sampled.pick('postponed');
  if (postponed !== undefined) logger.warn({ event: 'delivery.postponed', postponed, pauseMs, error });
}
