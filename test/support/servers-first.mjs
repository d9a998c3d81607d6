import { BaseSequencer } from 'vitest/node';

/** Directories of tests with servers and processes of their own. */
const ownServers = /\/test\/(model|faults|e2e|integration|contracts)\//;

/**
 * Files with servers and processes before those without. Vitest by itself goes by their size where it has not timed them yet, as in a
 * fresh clone, and a small file that takes half a minute may then come last, alone.
 */
export default class ServersFirst extends BaseSequencer {
  /**
   * @override
   * @param {import('vitest/node').TestSpecification[]} files
   */
  async sort(files) {
    const sorted = await super.sort(files);
    const isLong = (/** @type {import('vitest/node').TestSpecification} */ { moduleId }) => ownServers.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}
