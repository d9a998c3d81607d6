import type { Clock } from '../infra/clock.js';

/** Shorter than the pause between two looks at one subscription (src/endpoints/plan-release.ts): none is late by it. */
const betweenLooksMs = 100;
/**
 * So long at most: a subscription with a rate may always have something held, and about an object that keeps order
 * there may always be more; the upkeep comes after that. The next run goes on from there.
 */
const longestMs = 5 * 60_000;

/**
 * Of what is not settled: something is held that may be released; or all that is held stays so until an operator acts
 * or an endpoint recovers, but something was released, and may be held again.
 */
export type Left = 'held' | 'released' | 'nothing';

/** Of a run of the dispatcher that is to end. */
export interface HeldWork {
  /** Makes the looks that are due. @returns how many deliveries were released */
  release(): Promise<number>;
  /** Whether this process still has deliveries to send. Where a broker keeps the queue, workers have them. */
  isAnyInHand(): Promise<boolean>;
  findLeft(): Promise<Left>;
}

/**
 * Held deliveries are released a window at a time, as their endpoint keeps up. A look that releases nothing says only
 * that a window is full: so this goes on until nothing is left that may be released, and nothing is on its way.
 * @param patienceMs longer than one call takes. Where nothing was released for so long, no worker runs, an endpoint
 *   hangs, or the next call of a rate is far away
 * @returns how many were released
 */
export async function releaseAll(
  work: HeldWork,
  clock: Clock,
  patienceMs: number,
  stopping: AbortSignal,
): Promise<number> {
  const begunAt = clock.now();
  let [total, movedAt, wasAny] = [0, begunAt, false];
  let left: Left = 'held';
  while (!stopping.aborted) {
    // Not while all that is held is parked: of several endpoints that hang, one would always be being probed.
    const released = left === 'held' ? await work.release() : 0;
    total += released;
    // In this order: what leaves this process is settled or held.
    const isAnyInHand = await work.isAnyInHand();
    left = await work.findLeft();
    const isAny = isAnyInHand || left !== 'nothing';
    // Once more after the last has ended: if that was a probe, its endpoint is closed a moment later.
    if (!isAny && !wasAny) break;
    wasAny = isAny;
    const now = clock.now();
    if (released > 0 || isAnyInHand) movedAt = now;
    if (now - movedAt >= patienceMs || now - begunAt >= longestMs) break;
    await clock.pause(betweenLooksMs, stopping);
  }
  return total;
}
