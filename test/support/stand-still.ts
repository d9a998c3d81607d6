import type { LookupFunction } from 'node:net';

/** This process does nothing, as one that is stopped, or whose machine is suspended; what comes lies in its sockets. */
export function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/**
 * Finds these addresses for every name; once the first is being tried, this process stands still for longer than Node
 * itself gives an address to accept a connection. An immediate: timers come next, before what has come to the sockets.
 * In the midst of timers it would be the other way round, and the connection be there in time.
 */
export const standingStillAfter =
  (addresses: string[]): LookupFunction =>
  (_name, _options, callback) =>
    setImmediate(() => {
      callback(
        null,
        addresses.map((address) => ({ address, family: 4 })),
      );
      process.nextTick(standStill, 500);
    });
