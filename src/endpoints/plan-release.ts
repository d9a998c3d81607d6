import type { Look } from '../ledger/held-subscriptions.js';
import type { OpenEndpoint } from '../ledger/open-endpoints.js';
import type { Subscription } from '../subscriptions/subscription.js';

/** The choice of a dispatcher when it looks at a subscription with held deliveries. */
export type ReleasePlan =
  /** Nothing is released before an operator resumes it. */
  | { kind: 'paused'; nextLookInMs: number }
  /** Nothing is released before its endpoint is probed or closed, or before its rate allows a probe. */
  | { kind: 'parked'; endpoint: OpenEndpoint; nextLookInMs: number }
  /**
   * Its endpoint is parked, and a probe is due: one delivery, if no other process releases it. It costs a call of its
   * rate.
   */
  | { kind: 'probe'; endpoint: OpenEndpoint; rate: Rate | null; nextLookInMs: number }
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
/** While the endpoint is parked, and a probe is due: another process makes it, or the rate forbids it. */
const probeDueMs = 500;
/**
 * While the endpoint is parked, and no probe is due, at most. Where it is closed, or may be probed sooner than it
 * seemed, the process that made the look makes another one (src/dispatching/parked-looks.ts), unless it has ended.
 */
const parkedMs = 10_000;
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
  const { ratePerSecond } = subscription;
  const rate = ratePerSecond === null ? null : earned(look, ratePerSecond);
  if (endpoint) {
    const probeInMs = endpoint.nextProbeAt.getTime() - nowMs;
    if (probeInMs > 0) return { kind: 'parked', endpoint, nextLookInMs: Math.min(probeInMs, parkedMs) };
    // One whose rate forbids a probe does not claim it: another subscription of the endpoint may make it meanwhile.
    return !rate || rate.credit >= 1
      ? { kind: 'probe', endpoint, rate, nextLookInMs: probeDueMs }
      : { kind: 'parked', endpoint, nextLookInMs: probeDueMs };
  }
  if (!rate || ratePerSecond === null)
    return { kind: 'release', window: look.window, limit: look.window, rate: null, nextLookInMs: releasingMs };
  const { credit } = rate;
  return {
    kind: 'release',
    window: look.window,
    // Two looks at the same time may have spent more than there was (src/ledger/held-subscriptions.ts).
    limit: Math.max(0, Math.floor(credit)),
    rate,
    // A slow rate need not be looked at four times a second: when it has earned one whole call.
    nextLookInMs: Math.max(
      releasingMs,
      Math.min(longestMs, ((1 - (credit > 0 ? credit % 1 : credit)) / ratePerSecond) * 1000),
    ),
  };
}

function earned(look: Look, ratePerSecond: number): Rate {
  const most = 1 + ratePerSecond * burstSeconds;
  // Two looks at a higher rate that was lowered meanwhile may have left a debt that this one would pay off for hours.
  const owed = Math.max(look.rateCredit, -most);
  const credit = Math.min(owed + ratePerSecond * look.secondsSinceCredit, most);
  return { credit, ofASecond: Math.ceil(ratePerSecond) };
}
