import { expect, it } from 'vitest';
import { leadsTo } from './volume-links.ts';

const from = '2026-11-28T02:00:00.000Z';

it('a number leads to what it counts, of the same subject', () => {
  expect(leadsTo({ of: 'all' }, 'accepted', from)).toEqual({ to: '/notifications', search: { acceptedFrom: from } });
  expect(leadsTo({ of: 'application', id: 'cases' }, 'accepted', from)).toEqual({
    to: '/notifications',
    search: { publisher: 'cases', acceptedFrom: from },
  });
  expect(leadsTo({ of: 'channel', id: 'cases' }, 'accepted', undefined)?.search).toMatchObject({ channel: 'cases' });
});

it('deliveries of notifications that were accepted before are not left out where a number leads', () => {
  const subscription = { of: 'subscription', id: 'abc' } as const;
  expect(leadsTo(subscription, 'delivered', from)).toEqual({
    to: '/notifications',
    search: { subscription: 'abc', state: 'delivered' },
  });
  expect(leadsTo(subscription, 'gaveUp', from)).toEqual({ to: '/dead-letters', search: { subscription: 'abc' } });
});

it('a number of which there is no list leads nowhere', () => {
  expect(leadsTo({ of: 'all' }, 'failedAttempts', from)).toBeUndefined();
  expect(leadsTo({ of: 'channel', id: 'cases' }, 'duplicates', from)).toBeUndefined();
});
