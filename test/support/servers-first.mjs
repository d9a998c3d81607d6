import { BaseSequencer } from 'vitest/node';

/**
 * In this order: files that wait for most of their time, which cost the others nothing; those that start whole programs; those with
 * servers; and all others.
 */
const groups = [
  /\/(redis-outage|delivery-queue\.rabbitmq|webhook-client|alerts|private-servers|graceful-shutdown)\./,
  /\/test\/(model|faults|e2e)\//,
  /\/test\/(integration|contracts)\//,
];

/**
 * Vitest by itself goes by the size of files where it has not timed them yet, as in a fresh clone. Then a small file that waits for
 * half a minute may come last, when there is nothing else left to do.
 */
export default class ServersFirst extends BaseSequencer {
  /**
   * @override
   * @param {import('vitest/node').TestSpecification[]} files
   */
  async sort(files) {
    const sorted = await super.sort(files);
    const groupOf = (/** @type {import('vitest/node').TestSpecification} */ { moduleId }) => {
      const nr = groups.findIndex((group) => group.test(moduleId));
      return nr < 0 ? groups.length : nr;
    };
    return sorted.toSorted((one, other) => groupOf(one) - groupOf(other));
  }
}
