import { describe, expect, it } from 'vitest';
import type { Situation, SubscriptionWithHeld } from '../../subscriptions/data.ts';
import { flowOf, heldApart, heldBecause, weekBefore } from './flow.ts';

const holding = (byReason: SubscriptionWithHeld['held']['byReason'], pausedAt: string | null = null) => ({
  pausedAt,
  held: {
    count: Object.values(byReason).reduce((sum, count) => sum + count, 0),
    byReason,
    oldestAt: null,
    isDropping: false,
  },
});
const nothing = holding({});
const quiet: Situation = {
  subscriptionId: '01890a5d-ac96-774b-bcce-b302099a8057',
  held: 0,
  oldestHeldAt: null,
  waiting: 0,
  dead: 0,
  lastFailure: null,
  endpoint: null,
};
const holdingSince = '2026-11-27T12:00:00Z';
const parked: Situation = {
  ...quiet,
  endpoint: { address: 'receiver:80', reason: 'timeouts', openedAt: '', nextProbeAt: '' } as Situation['endpoint'],
};
const failing: Situation = {
  ...quiet,
  waiting: 2,
  lastFailure: { notificationId: quiet.subscriptionId, acceptedAt: '', error: null, status: 500 },
};

describe('deliveries of a subscription', () => {
  it.each([
    ['go out', nothing, quiet, 'runs'],
    ['go out, and some wait for another attempt', nothing, failing, 'waits'],
    ['may be held, before it is known', nothing, undefined, 'unknown'],
    ['are held by its rate', holding({ rate: 3 }), quiet, 'held'],
    ['are held by its rate, whatever else is not known yet', holding({ rate: 3 }), undefined, 'held'],
  ])('%s', (_, subscription, situation, expected) => {
    expect(flowOf(subscription, situation)).toBe(expected);
  });

  it.each([
    [
      'its rate, order and a busy endpoint',
      holding({ rate: 1, order: 2, 'endpoint-busy': 3 }),
      quiet,
      ['rate', 'order', 'endpoint-busy'],
    ],
    ['nothing but the pause that is shown', holding({ paused: 1 }, '2026-11-27T12:00:00Z'), quiet, []],
    ['nothing but the open circuit that is shown', holding({ 'endpoint-parked': 1 }), parked, []],
    ['an open circuit, before it is known which', holding({ 'endpoint-parked': 1 }), undefined, ['endpoint-parked']],
    ['what is over, and goes out', holding({ paused: 1, 'endpoint-parked': 1 }), quiet, ['goesOut']],
  ])('are held because of %s', (_, subscription, situation, expected) => {
    expect(heldBecause(subscription, situation)).toEqual(expected);
  });

  it('that wait for an earlier one are told apart from those that are held otherwise, as in the list', () => {
    const subscription = holding({ rate: 2, order: 3 });
    const situation = { ...quiet, held: 2, oldestHeldAt: holdingSince };
    expect(heldApart(subscription, situation)).toEqual({ count: 2, oldestAt: holdingSince, inLine: 3 });
  });
});

it('what is counted of seven days is listed from their beginning, to the minute', () => {
  expect(weekBefore(Date.parse('2026-11-27T12:00:59.999Z'))).toBe('2026-11-20T12:00:00.000Z');
});
