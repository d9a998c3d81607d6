import { BaseSequencer } from 'vitest/node';

/** Files that leave the processor idle for two thirds of their time, or more. */
const waits =
  /\/(accepted-means-committed|alerts|at-most-once|command-line|delivery-queue|delivery-queue\.rabbitmq|fuzz-receivers|idempotency|live-events|order-per-object|private-servers|redis-outage|retried-on-schedule|time-limits|webhook-client|whole-machine)\.(e2e-)?spec\.ts$/;
/** The others: those that start whole programs, those with servers, and, last, those without. */
const works = [/\/test\/(model|faults|e2e)\//, /\/test\/(integration|contracts)\//];

/**
 * Begins with files that work and files that wait by turns, as long as there are some that wait. Vitest by itself goes
 * by the size of files where it has not timed them yet, as in a fresh clone. Then several that wait run at once, and a
 * small file that takes half a minute may come last, when there is nothing else left to do.
 */
export default class OrderOfFiles extends BaseSequencer {
  /**
   * @override
   * @param {import('vitest/node').TestSpecification[]} files
   */
  async sort(files) {
    const sorted = await super.sort(files);
    const waiting = sorted.filter(({ moduleId }) => waits.test(moduleId));
    const groupOf = (/** @type {import('vitest/node').TestSpecification} */ { moduleId }) => {
      const nr = works.findIndex((group) => group.test(moduleId));
      return nr < 0 ? works.length : nr;
    };
    const working = sorted
      .filter(({ moduleId }) => !waits.test(moduleId))
      .toSorted((one, other) => groupOf(one) - groupOf(other));
    const pairs = Array.from({ length: Math.max(waiting.length, working.length) }, (_, nr) => [
      working[nr],
      waiting[nr],
    ]);
    return pairs.flat().filter((file) => file !== undefined);
  }
}
