import { isProblem } from '../../api/problem.ts';
import type { DeliveryState } from '../../parts/delivery-state.tsx';

/** While something is on its way; and while all that is left waits for a later time, or Heraut is in trouble. */
const [soonMs, laterMs] = [700, 5_000];

/**
 * When to look again at what became of a notification; false: it stays as it is.
 * @param open the states of its deliveries that have not ended; undefined: they are not known yet
 */
export function lookAgainMs(open: readonly DeliveryState[] | undefined, error: unknown): number | false {
  // It was accepted, so it was there: the ledger keeps it no more.
  if (isProblem(error) && error.status === 404) return false;
  if (open?.length === 0) return false;
  const isWaiting = open?.every((state) => state === 'waiting' || state === 'held');
  return isWaiting || error !== null ? laterMs : soonMs;
}
