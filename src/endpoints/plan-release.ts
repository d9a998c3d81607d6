import type { Look } from '../ledger/held-subscriptions.js';
import type { OpenEndpoint } from '../ledger/open-endpoints.js';
import type { Subscription } from '../subscriptions/subscription.js';

/** The choice of a dispatcher when it looks at a subscription with held deliveries. */
export type ReleasePlan =
  /** Nothing is released before an operator resumes it. */
  | { kind: 'paused'; nextLookInMs: number }
  /** Nothing is released before its endpoint is probed or closed. */
  | { kind: 'parked'; nextLookInMs: number }
  /** Its endpoint is parked, and a probe is due: one delivery, if no other process releases it. */
  | { kind: 'probe'; endpoint: OpenEndpoint; nextLookInMs: number }
  /** As many as `window` has room for, and at most `limit`. `rate`: null, it has none. */
  | { kind: 'release'; window: number; limit: number; rate: Rate | null; nextLookInMs: number };

export interface Rate {
  /** Calls that it allows now. */
  credit: number;
  /** Calls of a second, a whole number. */
  ofASecond: number;
}

/**
 * Until the next look, while deliveries are released. A delivery may wait as long although its rate would let it go at
 * once.
 */
const releasingMs = 250;
/** While the endpoint is parked: the worker that closes it does not know which subscriptions wait for that. */
const parkedMs = 500;
/** With a slow rate, at most. */
const longestMs = 1000;
/** While it is paused: when it is resumed, it is looked at at once. */
const pausedMs = 10_000;
/**
 * Seconds of its rate that are not lost when a look comes late, beside one whole call: more than lies between two
 * looks, and little enough to keep the rate.
 */
const burstSeconds = 0.5;

/**
 * @param subscription undefined: it was deleted
 * @param endpoint the open one that it leads to; undefined: none is
 * @param nowMs milliseconds since 1970, by Postgres' clock
 */
export function planRelease(
  look: Look,
  subscription: Subscription | undefined,
  endpoint: OpenEndpoint | undefined,
  nowMs: number,
): ReleasePlan {
  // A worker ends the deliveries of one that was deleted or disabled: those that were held after the rule for that had
  // looked.
  if (!subscription || subscription.disabledAt)
    return { kind: 'release', window: look.window, limit: look.window, rate: null, nextLookInMs: releasingMs };
  if (subscription.pausedAt) return { kind: 'paused', nextLookInMs: pausedMs };
  if (endpoint) {
    const isDue = endpoint.nextProbeAt.getTime() <= nowMs;
    return isDue ? { kind: 'probe', endpoint, nextLookInMs: parkedMs } : { kind: 'parked', nextLookInMs: parkedMs };
  }
  const rate = subscription.ratePerSecond;
  if (rate === null)
    return { kind: 'release', window: look.window, limit: look.window, rate: null, nextLookInMs: releasingMs };
  const credit = Math.min(look.rateCredit + rate * look.secondsSinceCredit, 1 + rate * burstSeconds);
  return {
    kind: 'release',
    window: look.window,
    limit: Math.floor(credit),
    rate: { credit, ofASecond: Math.ceil(rate) },
    // A slow rate need not be looked at four times a second: when it has earned one whole call.
    nextLookInMs: Math.max(releasingMs, Math.min(longestMs, ((1 - (credit % 1)) / rate) * 1000)),
  };
}
