import type { ReleasePlan } from '../endpoints/plan-release.js';
import { longestPauseMs, quietSeconds, type Look, type LookedAt } from '../ledger/held-subscriptions.js';
import type { ReleaseLimit } from '../ledger/release.js';
import { firstWindow, nextWindow, nextWindowAtRate } from '../ledger/release-window.js';

/**
 * Where not too many are looked at, a subscription may be looked at again sooner than it is planned:
 * - while its window grows, below `belowWindow`: an endpoint that is well again shows its pace in half a second instead
 *   of two;
 * - where at least `settled` of those released before were settled since the former look: three looks a second, at the
 *   largest window, release 6144, and a worker sends more than that to an endpoint that is quick.
 *
 * After `times` of these the round ends, and the next one begins when the dispatcher looks again: a backlog may last
 * for hours, and the metric of the age of rounds would say that nothing is released.
 */
export const soon = { belowWindow: 512, settled: 512, times: 16 };
/**
 * Of so many that are looked at together: how soon. Fifty that recover at the same moment grow their windows in half a
 * second, in as many looks as they would make in two. Those that grow again and again, since their receivers take no
 * more and their windows are halved, stay below a thousand looks a second; with more of them there is always one due.
 */
const soonOf = [
  { mostLooks: 8, inMs: 50 },
  { mostLooks: 63, inMs: 100 },
];
/** Until the next look, where nothing is held, and its row is kept only for a while; at first. */
const idleMs = 1000;
/** Deliveries that one statement may release or count, where it is for several subscriptions. */
const mostOfStatement = 4096;

/** A look at a subscription, and what it is for. */
export interface Planned {
  look: Look;
  plan: ReleasePlan;
}

/** Of one subscription. */
export interface ReleasedOf {
  /** Deliveries that were released now. */
  count: number;
  /** Released before, and not yet settled. */
  outstanding: number;
}

export interface MadeLook {
  lookedAt: LookedAt;
  /** It wants to be looked at again sooner than the others. */
  isSoon: boolean;
}

/**
 * @param probing the subscriptions of which one delivery is to be released as a probe
 * @returns undefined: nothing may be released
 */
export function limitFor({ look, plan }: Planned, probing: ReadonlySet<string>): ReleaseLimit | undefined {
  const { subscriptionId } = look;
  if (plan.kind === 'release') return { subscriptionId, window: plan.window, limit: plan.limit };
  // A probe goes whatever the window leaves: deliveries that were released before may hang at the endpoint that is
  // probed.
  return probing.has(subscriptionId)
    ? { subscriptionId, window: look.window * 2 + 1, limit: 1, isProbe: true }
    : undefined;
}

/** The same plans, releasing no more than the lane has room for. Probes are few, and go. */
export function withinLevel(planned: readonly Planned[], level: number): Planned[] {
  return planned.map(({ look, plan }) =>
    plan.kind === 'release' ? { look, plan: { ...plan, limit: Math.min(plan.limit, level) } } : { look, plan },
  );
}

/** How many may be released for each of those that are to be released at the pace of their endpoint. */
export const wantsOf = (planned: readonly Planned[]): number[] =>
  planned.flatMap(({ plan }) => (plan.kind === 'release' ? Math.min(plan.window, plan.limit) : []));

/** Those that may share a statement: of small windows many, of large ones few. */
export function inStatements(limits: readonly ReleaseLimit[]): ReleaseLimit[][] {
  const statements: ReleaseLimit[][] = [];
  let room = 0;
  for (const limit of limits) {
    room -= limit.window;
    const last = statements.at(-1);
    if (last && room >= 0) last.push(limit);
    else {
      statements.push([limit]);
      room = mostOfStatement - limit.window;
    }
  }
  return statements;
}

/** @returns undefined: those that want to be looked at again sooner are looked at as planned */
export const soonInMs = (looks: number): number | undefined => soonOf.find(({ mostLooks }) => looks <= mostLooks)?.inMs;

/**
 * @param released undefined: nothing might be
 * @param soonMs until the next look, where it may be sooner than planned
 * @param forgetAfterMs until the subscription is forgotten, if nothing is held for it any more
 */
export function madeLook(
  { look, plan }: Planned,
  released: ReleasedOf | undefined,
  soonMs: number | undefined,
  forgetAfterMs: number,
): MadeLook {
  const { subscriptionId, claimedUntil, creditedAt } = look;
  const { count, outstanding } = released ?? { count: 0, outstanding: look.outstanding };
  // Not planned, or paused since then.
  if (plan.kind !== 'release' || !released) {
    // When it is closed or resumed, it starts slowly. A probe is a call like any other.
    const rateCredit = plan.kind === 'probe' && plan.rate && count > 0 ? plan.rate.credit - count : null;
    const lookedAt = { ...look, released: count, window: firstWindow, rateCredit, nextLookInMs: plan.nextLookInMs };
    return { lookedAt, isSoon: false };
  }
  const { rate } = plan;
  const window = rate
    ? nextWindowAtRate(look.window, look.outstanding, outstanding, rate.ofASecond)
    : nextWindow(look.window, look.outstanding, outstanding);
  const isGrowing = window > look.window && window < soon.belowWindow;
  const isQuick = look.outstanding - outstanding >= soon.settled;
  // Where the rate, not the window, kept the rest, an earlier look would release no more.
  const isPaced = rate !== null && count === plan.limit;
  const isSoon = soonMs !== undefined && count > 0 && !isPaced && (isGrowing || isQuick);
  // Where the lane had no room, it is not known whether any is held.
  const isIdle = count + outstanding === 0 && !rate && plan.limit > 0;
  const isBacklog = count >= Math.min(plan.limit, plan.window - outstanding);
  const credit = rate && rate.credit - count;
  const lookedAt: LookedAt = {
    subscriptionId,
    claimedUntil,
    creditedAt,
    released: count,
    window,
    outstanding: outstanding + count,
    isBacklog,
    // Where nothing is left to be released, the next look is for what comes from now on: of a quiet time one call is
    // kept, or half a second's calls would go at once.
    rateCredit: credit !== null && !isBacklog ? Math.min(1, credit) : credit,
    nextLookInMs: isIdle ? idlePauseMs(look, forgetAfterMs) : isSoon ? soonMs : plan.nextLookInMs,
  };
  return { lookedAt, isSoon };
}

/**
 * Where the queue refused some of what was released: to the next look they seem to be settled, and the window would
 * grow for nothing.
 */
export function madeInVain(made: MadeLook, { window }: Look): MadeLook {
  const lookedAt = { ...made.lookedAt, window: Math.min(made.lookedAt.window, window), outstanding: 0 };
  return { ...made, lookedAt, isSoon: false };
}

/**
 * As long as nothing was held, so that it doubles, up to when the row is forgotten: ten thousand of them cost little.
 */
function idlePauseMs({ secondsSinceHeld }: Look, forgetAfterMs: number): number {
  if (secondsSinceHeld < quietSeconds) return idleMs;
  const quietMs = secondsSinceHeld * 1000;
  return Math.max(idleMs, Math.min(quietMs, forgetAfterMs - quietMs, longestPauseMs));
}
