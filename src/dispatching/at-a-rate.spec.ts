import { describe, expect, it } from 'vitest';
import { planRelease } from '../endpoints/plan-release.js';
import type { Look } from '../ledger/held-subscriptions.js';
import { firstWindow } from '../ledger/release-window.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { madeLook } from './made-look.js';

const lookMs = 250;

/**
 * Looks at a subscription with more held than is ever released; each call takes `callMs`, with Infinity there is no
 * worker.
 */
function play({ rate, callMs, seconds, from = {} }: { rate: number; callMs: number; seconds: number; from?: object }) {
  const subscription = { disabledAt: null, pausedAt: null, ratePerSecond: rate } as Subscription;
  let look: Look = {
    subscriptionId: 'one',
    claimedUntil: '',
    creditedAt: '',
    window: firstWindow,
    outstanding: 0,
    isBacklog: true,
    rateCredit: 0,
    secondsSinceCredit: lookMs / 1000,
    secondsSinceHeld: 0,
    catalogueVersion: 1,
    ...from,
  };
  const inFlight: number[] = [];
  const released: number[] = [];
  for (let now = 0; now < seconds * 1000;) {
    while (inFlight[0]! <= now) inFlight.shift();
    const plan = planRelease(look, subscription, undefined, now);
    if (plan.kind !== 'release') throw new Error(plan.kind);
    const outstanding = Math.min(inFlight.length, plan.window);
    const count = Math.max(0, Math.min(plan.limit, plan.window - outstanding));
    for (let nr = 0; nr < count; nr++) inFlight.push(now + callMs);
    const { lookedAt } = madeLook({ look, plan }, { count, outstanding }, 50, 120_000);
    now += lookedAt.nextLookInMs;
    released.push(count);
    look = { ...look, ...lookedAt, rateCredit: lookedAt.rateCredit!, secondsSinceCredit: lookedAt.nextLookInMs / 1000 };
  }
  const total = released.reduce((sum, count) => sum + count, 0);
  return { look, perSecond: total / seconds, inFlight: inFlight.length };
}

describe('a subscription with a rate and more than it may send', () => {
  it('owes no more than a call and half a second at its present rate, where looks at a higher one spent too much', () => {
    const { look } = play({ rate: 0.1, callMs: 10, seconds: 30, from: { rateCredit: -250 } });
    expect(look.rateCredit).toBeGreaterThan(0);
  });

  it.each([
    [0.2, 10],
    [5, 10],
    [5, 3000],
    [20, 400],
    [200, 10],
    [200, 900],
    [500, 3000],
    [5000, 10],
    [20_000, 10],
  ])('gets %s a second, though each call takes %s ms', (rate, callMs) => {
    const { look } = play({ rate, callMs, seconds: 30 }); // slow start
    const { perSecond } = play({ rate, callMs, seconds: 60, from: look });
    expect(perSecond).toBeGreaterThan(rate * 0.9);
    expect(perSecond).toBeLessThan(rate * 1.1);
  });

  it.each([2, 20, 200])('at %s a second has no more than that released while no worker runs', (rate) => {
    const { look } = play({ rate, callMs: 10, seconds: 30 });
    expect(play({ rate, callMs: Infinity, seconds: 60, from: look }).inFlight).toBeLessThanOrEqual(rate);
  });

  it('whose calls take long has no more released than twice what was in flight', () => {
    const { look } = play({ rate: 5, callMs: 3000, seconds: 30 });
    expect(play({ rate: 5, callMs: Infinity, seconds: 60, from: look }).inFlight).toBeLessThanOrEqual(2 * 15 + 2);
  });

  it('has the window of a second again when its calls are quick again', () => {
    const { look } = play({ rate: 50, callMs: 5000, seconds: 30 });
    expect(look.window).toBeGreaterThan(200);
    expect(play({ rate: 50, callMs: 10, seconds: 30, from: look }).look.window).toBe(50);
  });
});
