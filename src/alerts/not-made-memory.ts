import type { Subscription } from '../subscriptions/subscription.js';
import { isWithin, mostSubjects, subjectOf, type Part } from './look.js';
import type { Memory } from './memory.js';
import type { NotMadeFor } from './not-made.js';

/**
 * A delivery of a subscription with a rate may be held for that at the moment of a round, and does not count then as
 * one whose call is not made. Each is tried again within five minutes, and may be held for one interval of the rate
 * after that; two rounds are 15 seconds apart.
 */
const seenForMs = (ratePerSecond: number): number => 330_000 + 1000 / ratePerSecond;

/** Undefined: there are none. A round that sees a part of many knows only that there are. */
export function notMadeSince(
  now: Date,
  notMade: Part<NotMadeFor> | undefined,
  before: number | undefined,
): number | undefined {
  if (!notMade) return undefined;
  if (notMade.found.length > 0) return Math.min(before ?? Infinity, now.getTime());
  return notMade.after === undefined ? undefined : before;
}

/**
 * When rounds first, and last, saw each of them, of as many as a round looks at. Those that are not made no more begin
 * anew.
 */
export function notMadeSeen(
  now: Date,
  part: Part<NotMadeFor>,
  { notMadeFirst: first = {}, notMadeLast: last = {} }: Memory,
  find: (id: string) => Subscription | undefined,
): Required<Pick<Memory, 'notMadeFirst' | 'notMadeLast'>> {
  const at = now.getTime();
  const found = new Set(part.found.map(({ subscriptionId }) => subscriptionId));
  const rateOf = (id: string): number | null => {
    const subscription = find(id);
    if (!subscription || subscription.pausedAt || subscription.disabledAt) return null;
    return subscription.ratePerSecond;
  };
  // A time ahead is from before Postgres' clock was set back.
  const lastOf = (id: string): number => (found.has(id) ? at : Math.min(last[id] ?? at, at));
  const goesOn = (id: string): boolean => {
    if (found.has(id) || !isWithin(part, subjectOf(id))) return true;
    const rate = rateOf(id);
    return rate !== null && at - lastOf(id) < seenForMs(rate);
  };
  // Those known first: one for which there is no room any more would seem to have begun long ago.
  const known = Object.keys(first).filter(goesOn);
  const ids = [...known, ...[...found].filter((id) => !Object.hasOwn(first, id))].slice(0, mostSubjects);
  return {
    notMadeFirst: Object.fromEntries(ids.map((id) => [id, Math.min(first[id] ?? at, at)])),
    notMadeLast: Object.fromEntries(ids.filter((id) => rateOf(id) !== null).map((id) => [id, lastOf(id)])),
  };
}
