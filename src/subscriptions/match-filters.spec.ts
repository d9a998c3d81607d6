import { describe, expect, it } from 'vitest';
import { canonicalName } from '../channels/filter-names.js';
import { ChannelSubscribers } from './channel-subscribers.js';
import { demandsOf, meets } from './match-filters.js';

type Names = Record<string, string>;

const byCanonicalName = (characteristics: Names) =>
  new Map(Object.entries(characteristics).map(([name, value]) => [canonicalName(name), value]));

const isFound = (entries: Names[], characteristics: Names): boolean => {
  const index = new ChannelSubscribers();
  index.add(
    'subscription',
    entries.map((filters) => demandsOf({ filters })),
  );
  return index.match(byCanonicalName(characteristics)).length > 0;
};

describe('matching one entry', () => {
  it.each<[string, Names, Names, boolean]>([
    ['an entry without filters matches anything', {}, { zaaktype: 'a' }, true],
    [
      'an equal value matches, beside any other characteristics',
      { zaaktype: 'a' },
      { zaaktype: 'a', bronorganisatie: '1' },
      true,
    ],
    ['a filter the notification has no value for is met', { zaaktype: 'a' }, { bronorganisatie: '1' }, true],
    ['values are compared with their case', { zaaktype: 'a' }, { zaaktype: 'A' }, false],
    ['* matches any value', { zaaktype: '*', bronorganisatie: '1' }, { zaaktype: 'z', bronorganisatie: '1' }, true],
    ['an empty value is a value', { zaaktype: 'a' }, { zaaktype: '' }, false],
    ['a notification without characteristics goes to all', { zaaktype: 'a', bronorganisatie: '1' }, {}, true],
    [
      'every filter must be met',
      { zaaktype: 'a', bronorganisatie: '1' },
      { zaaktype: 'a', bronorganisatie: '2' },
      false,
    ],
    ['names are compared in their canonical form', { object_type: 'a' }, { objectType: 'b' }, false],
    [
      'names are compared in their canonical form, the other way round',
      { objectType: 'a' },
      { object_type: 'a' },
      true,
    ],
    ['a name that every object has is an ordinary name', { constructor: 'a' }, { constructor: 'b' }, false],
    [
      'the last of two names with one canonical form counts',
      { objectType: 'a', object_type: 'b' },
      { objectType: 'b' },
      true,
    ],
    [
      '* as the last of two such names demands nothing',
      { objectType: 'a', object_type: '*' },
      { objectType: 'b' },
      true,
    ],
  ])('%s', (_, filters, characteristics, isMet) => {
    expect(meets(demandsOf({ filters }), byCanonicalName(characteristics))).toBe(isMet);
    expect(isFound([filters], characteristics)).toBe(isMet);
  });
});

describe('matching several entries', () => {
  it('treats them as alternatives', () => {
    expect(isFound([{ zaaktype: 'a' }, { zaaktype: 'b' }], { zaaktype: 'b' })).toBe(true);
    expect(isFound([{ zaaktype: 'a' }, { zaaktype: 'b' }], { zaaktype: 'c' })).toBe(false);
  });

  it('is not met where there is no entry', () => {
    expect(isFound([], { zaaktype: 'a' })).toBe(false);
  });
});
