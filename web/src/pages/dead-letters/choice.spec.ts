import { expect, it } from 'vitest';
import { longestSearch, parseSearch, stringifySearch, type UrlState } from '../../parts/url-state.ts';
import { deadStates, idOfDelivery, idOfGroup } from '../../selection/selection.ts';
import { adding, isFull } from './choice.ts';

const deliveries = (count: number) =>
  Array.from({ length: count }, () =>
    idOfDelivery({ notificationId: crypto.randomUUID(), subscriptionId: crypto.randomUUID() }),
  );
const errorClasses = ['timeout', 'connection', 'refused-address', 'status-5xx'] as const;
const groups = (count: number) =>
  Array.from({ length: count }, () => crypto.randomUUID()).flatMap((subscriptionId) =>
    deadStates.flatMap((state) => errorClasses.map((errorClass) => idOfGroup({ subscriptionId, state, errorClass }))),
  );

it.each([
  ['single ones', 'delivery', deliveries(260)],
  ['groups', 'group', groups(20)],
] as const)('of %s no more are selected than an address has room for, however they are added', (_, name, ids) => {
  let state: UrlState = { channel: 'cases' };
  for (const id of ids) if (!isFull(state)) state = { ...state, [name]: adding(state, name, [id]) };
  const address = stringifySearch(state);
  expect(address.length).toBeLessThanOrEqual(longestSearch);
  expect(parseSearch(address)).toEqual(state);
  expect(state[name]).toEqual(ids.slice(0, state[name]!.length));
  expect(isFull(state)).toBe(true);

  const atOnce = { channel: 'cases', [name]: adding({ channel: 'cases' }, name, ids) };
  expect(stringifySearch(atOnce).length).toBeLessThanOrEqual(longestSearch);
  expect(isFull(atOnce)).toBe(true);
});

it('what is selected already stays where there is no room for more, and takes none again', () => {
  const [one, ...others] = deliveries(3);
  expect(adding({ delivery: [one!] }, 'delivery', [one!, ...others])).toEqual([one, ...others]);
  const full = { delivery: [one!], text: 'x'.repeat(longestSearch) };
  expect(adding(full, 'delivery', others)).toEqual([one]);
});
