import { expect, it } from 'vitest';
import { deadLettersOf, type Replay, type Selection } from './selection.ts';

const id = '2f0c3a44-5b7d-4a5e-9a5e-0123456789ab';
const group = { subscriptionId: id, state: 'failed', errorClass: 'timeout' } as const;

it.each<[Replay['kind'], Selection, object]>([
  ['close', { all: true }, {}],
  [
    'close',
    { subscriptions: [id], channels: ['cases'], errorClasses: ['timeout'] },
    { subscription: id, channel: 'cases', errorClass: 'timeout' },
  ],
  ['replay', { replay: id, states: ['failed', 'delivered'] }, { replay: id, state: 'failed' }],
  ['replay', { subscriptions: [id], states: ['expired', 'failed', 'unknown'] }, { subscription: id }],
  ['replay', { groups: [group] }, { group: [`${id}~failed~timeout`] }],
  ['close', { groups: [group] }, { group: [`${id}~failed~timeout`] }],
])('the dead letters that a %s of %j means have an address', (kind, selection, address) => {
  expect(deadLettersOf({ kind, selection })).toEqual(address);
});

it.each<[Replay['kind'], Selection]>([
  // Not those that are `unknown`, which the address has as well.
  ['replay', { all: true }],
  ['replay', { subscriptions: [id], channels: ['cases'] }],
  ['cancel', { all: true }],
  ['replay', { everythingFor: id }],
  ['close', { deliveries: [{ notificationId: id, subscriptionId: id }] }],
  ['close', { notification: id }],
  ['close', { subscriptions: [id, id.replace('2', '3')] }],
  ['close', { channels: ['cases', 'decisions'] }],
  ['close', { errorClasses: ['timeout', 'tls'] }],
  ['close', { all: true, states: ['failed', 'expired'] }],
  ['replay', { subscriptions: [id], states: ['cancelled'] }],
  ['close', { groups: Array.from({ length: 200 }, () => group) }],
])('no address says which dead letters a %s of %j means, so nothing leads to others', (kind, selection) => {
  expect(deadLettersOf({ kind, selection })).toBeUndefined();
});
