import { describe, expect, it } from 'vitest';
import type { Look } from '../ledger/held-subscriptions.js';
import { firstWindow } from '../ledger/release-window.js';
import { inStatements, limitFor, madeInVain, madeLook, soonInMs, withinLevel, type Planned } from './made-look.js';

const look: Look = {
  subscriptionId: 'one',
  claimedUntil: '2026-11-30 12:00:05+00',
  creditedAt: '2026-11-30 11:59:59+00',
  window: 100,
  outstanding: 100,
  isBacklog: true,
  rateCredit: 0,
  secondsSinceCredit: 1,
  secondsSinceHeld: 0,
  catalogueVersion: 1,
};
const release = { kind: 'release', window: 100, limit: 100, rate: null, nextLookInMs: 250 } as const;
const endpoint = {
  address: 'https://receiver.example',
  openedAt: new Date(0),
  reason: 'it hangs',
  failures: 3,
  probes: 0,
  nextProbeAt: new Date(0),
  leftAloneUntil: new Date(0),
  askedUntil: null,
};
const probe = { kind: 'probe', endpoint, rate: null, nextLookInMs: 500 } as const;
const none = new Set<string>();
const planned = (plan: Planned['plan'], changed: Partial<Look> = {}): Planned => ({
  look: { ...look, ...changed },
  plan,
});

describe('what a look may release', () => {
  it('is what its plan says', () => {
    expect(limitFor(planned(release), none)).toEqual({ subscriptionId: 'one', window: 100, limit: 100 });
  });

  it('is one delivery for a probe that was claimed, though all that was released before hangs', () => {
    expect(limitFor(planned(probe), new Set(['one']))).toEqual({
      subscriptionId: 'one',
      window: 201,
      limit: 1,
      isProbe: true,
    });
  });

  it.each([
    ['a probe that another process makes', probe] as const,
    ['a pause', { kind: 'paused', nextLookInMs: 1 } as const],
  ])('is nothing for %s', (_, plan) => {
    expect(limitFor(planned(plan), new Set(['another']))).toBeUndefined();
  });
});

describe('looks share a statement', () => {
  const limits = (...windows: number[]) =>
    windows.map((window, nr) => ({ subscriptionId: String(nr), window, limit: window }));
  const sizes = (...windows: number[]) => inStatements(limits(...windows)).map(({ length }) => length);

  it('as long as it may not release more than 4096 deliveries', () => {
    expect(sizes(...Array.from({ length: 64 }, () => 16))).toEqual([64]);
    expect(sizes(2048, 2048, 1, 4095)).toEqual([2, 2]);
  });

  it('except where one alone may release more', () => {
    expect(sizes(1, 5000, 1)).toEqual([1, 1, 1]);
  });

  it('and none is without a look', () => {
    expect(sizes()).toEqual([]);
  });
});

it.each([
  [1, 50],
  [8, 50],
  [9, 100],
  [63, 100],
  [64, undefined],
])('of %s subscriptions that are looked at together, those that grow are looked at again after %s ms', (looks, ms) => {
  expect(soonInMs(looks)).toBe(ms);
});

describe('a look that was made', () => {
  it('widens the window by what was settled since the one before', () => {
    const made = madeLook(planned(release), { count: 60, outstanding: 40 }, undefined, 120_000);
    expect(made).toEqual({
      lookedAt: {
        subscriptionId: 'one',
        claimedUntil: look.claimedUntil,
        creditedAt: look.creditedAt,
        released: 60,
        window: 160,
        outstanding: 100,
        isBacklog: true,
        rateCredit: null,
        nextLookInMs: 250,
      },
      isSoon: false,
    });
  });

  it('widens nothing where the queue refused some of it, neither now nor at the next look', () => {
    const made = madeInVain(madeLook(planned(release), { count: 60, outstanding: 40 }, 50, 120_000), look);
    expect(made).toMatchObject({ lookedAt: { window: 100, outstanding: 0, isBacklog: true }, isSoon: false });
    const next = { ...look, ...made.lookedAt, rateCredit: 0 };
    expect(madeLook(planned(release, next), { count: 100, outstanding: 0 }, 50, 120_000).lookedAt.window).toBe(100);
  });

  it('is repeated soon where the window grows, and not too many others are looked at', () => {
    expect(madeLook(planned(release), { count: 60, outstanding: 40 }, 50, 120_000)).toMatchObject({
      lookedAt: { nextLookInMs: 50 },
      isSoon: true,
    });
  });

  it.each([
    [512, 50],
    [511, 250],
  ])('is repeated soon where the endpoint is quick: %s settled since the one before, %s ms', (settled, ms) => {
    const full = planned({ ...release, window: 2048, limit: 2048 }, { window: 2048, outstanding: 2048 });
    const made = madeLook(full, { count: settled, outstanding: 2048 - settled }, 50, 120_000);
    expect(made).toMatchObject({ lookedAt: { nextLookInMs: ms }, isSoon: ms === 50 });
    expect(madeLook(full, { count: settled, outstanding: 2048 - settled }, undefined, 120_000).isSoon).toBe(false);
  });

  it('is not repeated soon for what a rate paces, however quick the endpoint is', () => {
    const rate = { credit: 1000.5, ofASecond: 2000 };
    const paced = planned({ ...release, window: 2048, limit: 1000, rate }, { window: 2048, outstanding: 1000 });
    expect(madeLook(paced, { count: 1000, outstanding: 0 }, 50, 120_000).isSoon).toBe(false);
    // Its window kept it from releasing as much as the rate allows.
    expect(madeLook(paced, { count: 999, outstanding: 0 }, 50, 120_000).isSoon).toBe(true);
  });

  it('finds no backlog where less was held than it might release', () => {
    const { lookedAt } = madeLook(planned(release), { count: 59, outstanding: 40 }, undefined, 120_000);
    expect(lookedAt.isBacklog).toBe(false);
  });

  it('takes what was released from the credit of its rate', () => {
    const paced = planned({ ...release, limit: 5, rate: { credit: 5.5, ofASecond: 20 } });
    const { lookedAt } = madeLook(paced, { count: 5, outstanding: 100 }, 50, 120_000);
    expect(lookedAt).toMatchObject({ window: 100, rateCredit: 0.5, nextLookInMs: 250 });
  });

  it('keeps the credit for one call where nothing is left, and all that is left where its window kept the rest', () => {
    const credits = [4, 5].map((count) => {
      const paced = planned({ ...release, window: 15, limit: 11, rate: { credit: 11, ofASecond: 20 } });
      return madeLook(paced, { count, outstanding: 10 }, 50, 120_000).lookedAt.rateCredit;
    });
    expect(credits).toEqual([1, 6]);
  });

  it('takes a probe that was released from the credit of its rate, and no other', () => {
    const paced = planned({ ...probe, rate: { credit: 1.5, ofASecond: 20 } });
    const credits = [1, 0].map((count) => madeLook(paced, { count, outstanding: 0 }, 50, 120_000).lookedAt.rateCredit);
    expect(credits).toEqual([0.5, null]);
  });

  it.each([
    [0, 1000],
    [10, 10_000],
    [90, 30_000],
    [119.9, 1000],
  ])('of a subscription for which nothing was held for %s s is followed by one after %s ms', (secondsSinceHeld, ms) => {
    const idle = planned(release, { secondsSinceHeld });
    expect(madeLook(idle, { count: 0, outstanding: 0 }, 50, 120_000).lookedAt.nextLookInMs).toBe(ms);
  });

  it('does not take a subscription for idle because the lane had no room for what it has held', () => {
    const [full] = withinLevel([planned(release)], 0);
    const { lookedAt } = madeLook(full!, { count: 0, outstanding: 0 }, 50, 120_000);
    expect(lookedAt).toMatchObject({ isBacklog: true, nextLookInMs: 250 });
  });

  it('leaves a backlog one where its subscription was paused before anything was released', () => {
    const { lookedAt } = madeLook(planned(release), undefined, 50, 120_000);
    expect(lookedAt).toMatchObject({ window: firstWindow, outstanding: 100, isBacklog: true, nextLookInMs: 250 });
  });

  it('begins with the first window when its endpoint is well again', () => {
    const { lookedAt } = madeLook(planned(probe), undefined, 50, 120_000);
    expect(lookedAt).toMatchObject({ window: firstWindow, outstanding: 100, isBacklog: true, nextLookInMs: 500 });
  });
});
