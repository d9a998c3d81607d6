/*
 * How many held deliveries of a subscription may be released and not yet settled. Slow start: twice as many each time that more
 * than half of them are done by the next look, so that the endpoint's own pace decides, whatever number of workers sends. Less
 * after one had to be held again (src/ledger/hold.service.ts).
 */

export const firstWindow = 16;
export const smallestWindow = 4;
/** A look comes four times a second: some eight thousand a second for one subscription. */
export const largestWindow = 2048;

/**
 * The window after a look.
 * @param outstanding released before, and not yet settled when it looked
 * @param released by this look
 */
export function nextWindow(window: number, outstanding: number, released: number): number {
  const isKeepingUp = outstanding * 2 < window && outstanding + released >= window;
  return isKeepingUp ? Math.min(largestWindow, window * 2) : window;
}
