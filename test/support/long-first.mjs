import { BaseSequencer } from 'vitest/node';

/** Directories of tests with servers and processes of their own: the longer their files take, the further in front. */
const long = ['test/model/', 'test/faults/', 'test/e2e/', 'test/integration/', 'test/contracts/'];

/**
 * Files that take long before those that do not: a file of a minute that comes last runs alone. Vitest by itself goes by their size
 * where it has not timed them yet, as in a fresh clone.
 */
export default class LongFirst extends BaseSequencer {
  /**
   * @override
   * @param {import('vitest/node').TestSpecification[]} files
   */
  async sort(files) {
    const rank = (/** @type {import('vitest/node').TestSpecification} */ { moduleId }) => {
      const found = long.findIndex((directory) => moduleId.includes(`/${directory}`));
      return found === -1 ? long.length : found;
    };
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}
