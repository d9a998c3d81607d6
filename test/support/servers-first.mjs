import sequencer from '@jest/test-sequencer';

/** @typedef {import('@jest/test-sequencer').default} Sequencer */
/** @typedef {Parameters<Sequencer['cacheResults']>[0]} Tests */

// Its types describe the file for `require`, in which the class is one level deeper than it is here.
const TestSequencer = /** @type {typeof sequencer.default} */ (/** @type {unknown} */ (sequencer));
const ownServers = /\.e2e-spec\.ts$|\/test\/(model|integration|contracts)\//;

/**
 * Files with servers and processes before those without. Jest by itself goes by their size where it has not timed them yet, as in
 * a fresh clone, and a small file that takes half a minute may then come last, alone.
 */
export default class ServersFirst extends TestSequencer {
  /**
   * @override
   * @param {Tests} tests
   * @returns {Tests}
   */
  sort(tests) {
    const sorted = /** @type {Tests} */ (super.sort(tests));
    return [
      ...sorted.filter(({ path }) => ownServers.test(path)),
      ...sorted.filter(({ path }) => !ownServers.test(path)),
    ];
  }
}
