import type { Look } from '../ledger/held-subscriptions.js';
import type { OpenEndpoint } from '../ledger/open-endpoints.js';
import type { Subscription } from '../subscriptions/subscription.js';

/** What a dispatcher does when it looks at a subscription with held deliveries. */
export type ReleasePlan =
  /** Nothing is released before somebody resumes it, or before that look. */
  | { kind: 'wait'; nextLookInMs: number }
  /** Its endpoint is parked, and a probe may be due: one delivery, if no other process releases it. */
  | { kind: 'probe'; endpoint: OpenEndpoint; nextLookInMs: number }
  /** As many as its window has room for, and at most `limit`. `rateCredit`: what its rate allows now; null: it has none. */
  | { kind: 'release'; limit: number; rateCredit: number | null; nextLookInMs: number };

/** While deliveries are released. Also how long one may wait that a rate lets go at once. */
const releasingMs = 250;
/** A parked endpoint closes when a worker says so, and a subscription is resumed by an operator, who looks on. */
const waitingMs = 1000;
const pausedMs = 10_000;
/** Seconds of its rate that may go out at once: more than lies between two looks, and little enough to keep the rate. */
const burstSeconds = 0.5;

/**
 * @param subscription undefined: it was deleted, and its held deliveries are being ended
 * @param endpoint the open one that it leads to; undefined: none is
 */
export function planRelease(
  look: Look,
  subscription: Subscription | undefined,
  endpoint: OpenEndpoint | undefined,
): ReleasePlan {
  if (!subscription || subscription.pausedAt) return { kind: 'wait', nextLookInMs: pausedMs };
  if (endpoint) return { kind: 'probe', endpoint, nextLookInMs: waitingMs };
  const rate = subscription.ratePerSecond;
  if (rate === null) return { kind: 'release', limit: look.window, rateCredit: null, nextLookInMs: releasingMs };
  const rateCredit = Math.min(look.rateCredit + rate * look.secondsSinceCredit, Math.max(1, rate * burstSeconds));
  return {
    kind: 'release',
    limit: Math.floor(rateCredit),
    rateCredit,
    // A slow rate need not be looked at four times a second: when it has earned one whole call.
    nextLookInMs: Math.max(releasingMs, Math.min(waitingMs, ((1 - (rateCredit % 1)) / rate) * 1000)),
  };
}
