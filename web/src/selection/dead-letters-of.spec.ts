import { expect, it } from 'vitest';
import { deadLettersOf, type Selection } from './selection.ts';

const id = '2f0c3a44-5b7d-4a5e-9a5e-0123456789ab';
const group = { subscriptionId: id, state: 'failed', errorClass: 'timeout' } as const;

it.each<[Selection, object]>([
  [{ all: true }, {}],
  [
    { subscriptions: [id], channels: ['cases'], errorClasses: ['timeout'] },
    { subscription: id, channel: 'cases', errorClass: 'timeout' },
  ],
  [
    { replay: id, states: ['failed', 'delivered'] },
    { replay: id, state: 'failed' },
  ],
  [{ subscriptions: [id], states: ['expired', 'failed', 'unknown'] }, { subscription: id }],
  [{ groups: [group] }, { group: [`${id}~failed~timeout`] }],
])('the dead letters that %j means have an address', (selection, address) => {
  expect(deadLettersOf(selection)).toEqual(address);
});

it.each<[Selection]>([
  [{ deliveries: [{ notificationId: id, subscriptionId: id }] }],
  [{ everythingFor: id }],
  [{ notification: id }],
  [{ subscriptions: [id, id.replace('2', '3')] }],
  [{ channels: ['cases', 'decisions'] }],
  [{ errorClasses: ['timeout', 'tls'] }],
  [{ all: true, states: ['failed', 'expired'] }],
  [{ subscriptions: [id], states: ['cancelled'] }],
  [{ groups: Array.from({ length: 200 }, () => group) }],
])('no address says which dead letters %j means, so nothing leads to others', (selection) => {
  expect(deadLettersOf(selection)).toBeUndefined();
});
