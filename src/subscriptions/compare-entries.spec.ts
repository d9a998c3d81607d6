import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { canonicalName } from '../channels/filter-names.js';
import { ChannelSubscribers } from './channel-subscribers.js';
import { compareEntries } from './compare-entries.js';
import { demandsOf } from './match-filters.js';
import type { SubscribedChannel } from './subscription.js';

const names = fc.constantFrom('zaaktype', 'objectType', 'object_type', 'bron', '__proto__');
const values = fc.constantFrom('a', 'A', '', 'b');
const filters = fc.dictionary(names, fc.oneof(values, fc.constant('*')), { maxKeys: 4 });
const entries = fc.array(fc.record({ channel: fc.constantFrom('cases', 'other'), filters }), { maxLength: 5 });
const characteristics = fc
  .array(fc.tuple(names.map(canonicalName), values), { maxLength: 4 })
  .map((pairs) => new Map(pairs));

describe('comparing the entries of a subscription', () => {
  it('finds one met exactly where publishing finds the subscription, and each by what its filters show', () => {
    fc.assert(
      fc.property(entries, characteristics, (channels, notification) => {
        const index = new ChannelSubscribers();
        index.add('one', channels.filter(({ channel }) => channel === 'cases').map(demandsOf));
        const compared = compareEntries(channels, 'cases', notification);
        expect(compared.some(({ isMet }) => isMet)).toBe(index.match(notification).length > 0);
        for (const { isMet, filters: shown } of compared)
          expect(isMet).toBe(shown.every(({ result }) => result !== 'different'));
      }),
    );
  });

  it('shows what was wanted, what there was, and those that lack least first', () => {
    const notification = new Map([
      ['zaaktype', 'b'],
      ['object_type', 'x'],
    ]);
    const channels: SubscribedChannel[] = [
      { channel: 'cases', filters: { zaaktype: 'a', objectType: 'y' } },
      { channel: 'other', filters: {} },
      { channel: 'cases', filters: { zaaktype: 'a', object_type: 'x', bron: '*', region: 'north' } },
    ];
    expect(compareEntries(channels, 'cases', notification)).toEqual([
      {
        number: 3,
        isMet: false,
        filters: [
          { name: 'zaaktype', wanted: 'a', actual: 'b', result: 'different' },
          { name: 'object_type', wanted: 'x', actual: 'x', result: 'equal' },
          { name: 'bron', wanted: '*', actual: null, result: 'any' },
          { name: 'region', wanted: 'north', actual: null, result: 'absent' },
        ],
      },
      {
        number: 1,
        isMet: false,
        filters: [
          { name: 'zaaktype', wanted: 'a', actual: 'b', result: 'different' },
          { name: 'objectType', wanted: 'y', actual: 'x', result: 'different' },
        ],
      },
    ]);
  });
});
