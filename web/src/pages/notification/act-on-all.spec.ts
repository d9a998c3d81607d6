import { expect, it } from 'vitest';
import type { DeliveryState } from '../../parts/delivery-state.tsx';
import { missedOf, unfinishedOf } from './act-on-all.ts';

const id = '01890a5d-ac96-774b-bcce-b302099a8057';
const inStates = (...states: DeliveryState[]) => states.map((state) => ({ state }));
const counted = { notification: id, count: 'yes' };

it('a notification is sent again to those for which it failed; what is cancelled or unknown is sent where it is named, for want of others', () => {
  expect(missedOf(id, inStates('delivered', 'failed', 'cancelled'), false)).toEqual(counted);
  expect(missedOf(id, inStates('expired'), false)).toEqual(counted);
  expect(missedOf(id, inStates('delivered', 'cancelled', 'unknown'), false)).toEqual({
    ...counted,
    state: ['unknown', 'cancelled'],
  });
  expect(missedOf(id, inStates('delivered', 'waiting'), false)).toBeUndefined();
  expect(missedOf(id, inStates('delivered'), true), 'among those that are not read yet').toEqual(counted);
});

it('what is unfinished of a notification is cancelled, where anything is', () => {
  const search = { what: 'unfinished', ...counted };
  for (const state of ['queued', 'waiting', 'held', 'sending'] as const)
    expect(unfinishedOf(id, inStates('delivered', state), false)).toEqual(search);
  expect(unfinishedOf(id, inStates('delivered', 'failed'), false)).toBeUndefined();
  expect(unfinishedOf(id, [], true)).toEqual(search);
});
