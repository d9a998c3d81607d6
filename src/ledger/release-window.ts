/*
 * How many held deliveries of a subscription may be released and not yet settled. Slow start, as TCP has it (RFC 5681
 * §3.1): while the window is full it grows by as much as was settled, so it doubles in the time that the endpoint
 * takes, whatever that is and whatever number of workers sends. Less after one had to be held again
 * (src/ledger/hold.service.ts).
 */

export const firstWindow = 16;
/**
 * A subscription may have one call open at a time (`maxConcurrency`), of several seconds each: more than one released
 * would be held again, and released again, at each look meanwhile.
 */
export const smallestWindow = 1;
/** More would only wait in the queue and in the memory of workers: a quick endpoint is looked at more often instead. */
export const largestWindow = 2048;

/** Of a window that is larger than what a rate needs, with each look. */
const shrinkBy = 0.9;

/**
 * The window for the next look.
 * @param before released and not yet settled after the former look, without those that were held again since
 * @param outstanding of these and others, at this look, before it released more
 */
export function nextWindow(window: number, before: number, outstanding: number): number {
  // Half of it, because it has grown since they were released.
  const wasFull = before * 2 >= window;
  return wasFull ? Math.min(largestWindow, window + Math.max(0, before - outstanding)) : window;
}

/**
 * The same where a rate paces what is released: the window follows what the endpoint has in flight at that rate, also
 * where a call takes seconds. While less than half of it is used it shrinks again, down to a second of the rate: all
 * that is released while no worker runs goes out at once when one starts.
 * @param ofASecond calls
 */
export function nextWindowAtRate(window: number, before: number, outstanding: number, ofASecond: number): number {
  const next = nextWindow(window, before, outstanding);
  const isLargerThanNeeded = before * 2 < window && window > ofASecond;
  return isLargerThanNeeded ? Math.max(ofASecond, Math.floor(window * shrinkBy)) : next;
}
