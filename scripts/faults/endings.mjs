/** @typedef {import('../heraut-process.mjs').Ending} Ending */
/** Signals by which scenarios end processes: at once, or in good order. @typedef {'SIGKILL' | 'SIGTERM'} Ender */

/**
 * A process that ends before a signal gets to it has ended by itself, also where one was about to end it.
 * @param {Ender | undefined} asked undefined: it should have gone on
 * @param {Ending} ending
 * @returns {string | undefined} its fault
 */
export function wrongWithEnding(asked, { status, signal }) {
  if (asked === 'SIGKILL' && signal === 'SIGKILL') return undefined;
  if (asked === 'SIGTERM' && status === 0) return undefined;
  const how = signal === null ? `with status ${status}` : `by ${signal}`;
  return asked === 'SIGTERM' ? `was told to end in good order, and ended ${how}` : `ended by itself, ${how}`;
}
