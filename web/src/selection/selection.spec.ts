import { expect, it } from 'vitest';
import { criteriaOf, selectionOf, untilCounted, type Selection } from './selection.ts';

it.each([
  [{ subscription: 'abc' }, { subscriptions: ['abc'] }],
  [{ errorClass: 'typo' }, { errorClasses: ['typo'] }],
  [{ acceptedFrom: 'yesterday' }, { acceptedFrom: 'yesterday' }],
  [{ acceptedTo: '0026-11-28T02:00' }, { acceptedTo: '0026-11-28T02:00' }],
  [{ replay: 'the last one' }, { replay: 'the last one' }],
  [{ notification: 'the last one' }, { notification: 'the last one' }],
  [{ state: 'typo' }, { all: true, states: ['typo'] }],
  [{ channel: ['cases', 'decisions'] }, { channels: ['cases', 'decisions'] }],
])('what an address has that is not understood stays in what is meant, for the API to refuse: %j', (address, meant) => {
  expect(selectionOf(criteriaOf(address))).toEqual(meant);
});

it('a time of an address is a moment, whatever its zone', () => {
  expect(criteriaOf({ acceptedFrom: '2026-11-28T02:00:00+01:00' }).acceptedFrom).toBe('2026-11-28T01:00:00.000Z');
});

it.each([
  [{ all: true }, { acceptedTo: '2026-11-28T02:00:00.001Z' }],
  [{ channels: ['cases'] }, { channels: ['cases'], acceptedTo: '2026-11-28T02:00:00.001Z' }],
  [{ acceptedTo: '2026-11-28T03:00:00Z' }, { acceptedTo: '2026-11-28T02:00:00.001Z' }],
  [{ acceptedTo: '2026-11-28T01:00:00Z' }, { acceptedTo: '2026-11-28T01:00:00Z' }],
  [{ notification: 'one' }, { notification: 'one' }],
] as const)('what is accepted after it was counted is not meant: %j', (selection, meant) => {
  expect(untilCounted(selection as Selection, '2026-11-28T02:00:00.000Z')).toEqual(meant);
});

it('takes two values of what can have one for one that the API refuses', () => {
  const twice = ['2026-11-28T02:00:00Z', '2026-11-29T02:00:00Z'];
  expect(criteriaOf({ acceptedFrom: twice, replay: ['a', 'b'] })).toMatchObject({
    acceptedFrom: twice.join(' '),
    replay: 'a b',
  });
});
