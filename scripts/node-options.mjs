/**
 * Options of Node with which Heraut is meant to run: `npm start`, the image and the documents say the same.
 *
 * Most of what a notification takes of memory is needed for a few dozen milliseconds. With Node's own 16 MB for young
 * objects, much of it is copied once or twice, and then collected among the old ones: a twentieth of the CPU
 * (docs/performance.md).
 *
 * V8 collects the old ones when they have grown by a part that it works out. Where they grow slowly, as here, that is a
 * tenth: 50 MB were collected every three seconds, which keeps two cores busy for 100 ms. In a burst it is up to three
 * times their size, which costs memory. With 100 they are collected when they have doubled: seldom under a steady load,
 * and soon enough in a burst (docs/decisions/0065).
 */
export const herautNodeOptions = ['--min-semi-space-size=32', '--max-semi-space-size=32', '--heap-growing-percent=100'];

/**
 * UV_THREADPOOL_SIZE: half of these threads may wait for name servers, so that a few that do not answer keep no other
 * name waiting.
 */
export const herautThreads = '16';
