import { BaseSequencer } from 'vitest/node';

/** Directories of tests: those that start whole programs, those with servers, and, last, all others. */
const groups = [/\/test\/(model|faults|e2e)\//, /\/test\/(integration|contracts)\//];

/**
 * Files that start programs come first, and those without a server last. Vitest by itself goes by their size where it has not timed
 * them yet, as in a fresh clone, and a small file that takes half a minute may then come last, alone.
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
