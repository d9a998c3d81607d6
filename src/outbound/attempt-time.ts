/**
 * Few, because each is a connector of its own. The longest is well below the two seconds of silence after which an
 * endpoint with calls in line is taken to hang (src/endpoints/hanging.ts): it would be parked for its first address.
 */
const choicesMs = [1500, 1000, 500];
/** As Node has it. */
const shortestMs = 250;

/**
 * Milliseconds in which an address must accept a connection before the next one of the same name is tried: Node closes
 * that attempt then, and never comes back to it. Long enough for a receiver far away whose first packet was lost, which
 * is sent again after a second, and for a process that stands still for a moment. At most a third of the time that
 * there is, so that an address which does not answer leaves time for others. The last address has all that is left.
 * @param limitMs 0: none
 */
export function attemptMsOf(limitMs: number): number {
  return choicesMs.find((ms) => limitMs === 0 || ms * 3 <= limitMs) ?? shortestMs;
}
