import { describe, expect, it } from 'vitest';
import type { Channel } from '../channels/channel.js';
import { canonicalName } from '../channels/filter-names.js';
import { parseNotification } from './parse-notification.js';

const now = Date.parse('2025-06-01T12:00:00Z');

const channel = (name: string, ...filters: string[]): Channel => ({
  id: name,
  name,
  documentationLink: '',
  filters,
  canonicalFilters: new Set(filters.map(canonicalName)),
  deduplication: null,
  maxAgeSeconds: null,
  bodyRetentionDays: null,
});

const channels = [
  channel('zaken', 'zaaktype', 'bronorganisatie'),
  channel('objecten', 'object_type'),
  channel('camel', 'objectType'),
  channel('vrij'),
];

const valid = {
  kanaal: 'vrij',
  hoofdObject: 'http://openzaak:8000/zaken/1',
  resource: 'status',
  resourceUrl: 'https://example.org/statussen/1',
  actie: 'create',
  aanmaakdatum: '2025-01-01T10:00:00Z',
  kenmerken: { a: '1' },
};

const parse = (raw: object, leewaySeconds = 0) =>
  parseNotification(JSON.parse(JSON.stringify(raw)) as Record<string, unknown>, {
    findChannel: (name) => channels.find((known) => known.name === name),
    now,
    leewaySeconds,
  });

function accepted(raw: object) {
  const result = parse(raw);
  if (result.kind === 'invalid') throw new Error(JSON.stringify(result.invalidParams));
  return result.notification;
}

function refused(raw: object) {
  const result = parse(raw);
  return result.kind === 'parsed' ? [] : result.invalidParams.map(({ name, code }) => `${name} ${code}`);
}

describe('the characteristics of a notification', () => {
  const withNames = (count: number, value: string | null = 'x') => ({
    ...valid,
    kenmerken: Object.fromEntries(Array.from({ length: count }, (_, nr) => [`name${nr}`, value])),
  });

  it('are a thousand at most', () => {
    expect(accepted(withNames(1000)).characteristics.size).toBe(1000);
    expect(refused(withNames(1001))).toEqual(['kenmerken max_length']);
  });

  it('are not looked at one by one where there are more', () => {
    expect(refused(withNames(1001, null))).toEqual(['kenmerken max_length']);
  });
});

describe('a notification as receivers get it', () => {
  it('is the text that was published if that was in the standard form', () => {
    expect(accepted(valid).body).toBe(JSON.stringify(valid));
  });

  it('keeps the order in which its fields and characteristics came', () => {
    const { kenmerken: _, ...rest } = valid;
    const turned = Object.fromEntries(Object.entries({ ...rest, kenmerken: { z: '1', a: '2' } }).reverse());
    expect(accepted(turned).body).toBe(JSON.stringify(turned));
  });

  it('always has kenmerken', () => {
    const { kenmerken: _, ...without } = valid;
    expect(accepted(without).body).toBe(JSON.stringify({ ...without, kenmerken: {} }));
  });

  it('has no fields that the standard does not know', () => {
    expect(accepted({ ...valid, id: '1', toString: 'x', __proto__: 'y' }).body).toBe(JSON.stringify(valid));
  });

  it('carries source when the publisher sent one', () => {
    expect(accepted({ ...valid, source: 'zrc' }).body).toBe(JSON.stringify({ ...valid, source: 'zrc' }));
  });

  it('has the field names in camelCase, also when they came in snake_case', () => {
    const { hoofdObject, resourceUrl, ...rest } = valid;
    const { body } = accepted({ hoofd_object: hoofdObject, resource_url: resourceUrl, ...rest });
    expect(Object.keys(JSON.parse(body) as object)).toEqual(['hoofdObject', 'resourceUrl', ...Object.keys(rest)]);
  });

  it('has texts trimmed, numbers as texts, and its time in UTC with microseconds', () => {
    const { body } = accepted({
      ...valid,
      resource: ' status ',
      actie: 5,
      aanmaakdatum: '2025-01-01T10:00:00.123456+01:00',
      kenmerken: { a: ' 1 ', b: 2 },
    });
    expect(JSON.parse(body)).toMatchObject({
      resource: 'status',
      actie: '5',
      aanmaakdatum: '2025-01-01T09:00:00.123456Z',
      kenmerken: { a: '1', b: '2' },
    });
  });

  it('has quotes, line ends and names such as __proto__ unchanged', () => {
    const kenmerken = JSON.parse('{"__proto__":"p","a\\"b":"x\\n\\u2028y","constructor":"c"}') as object;
    const { body, characteristics } = accepted({ ...valid, kenmerken });
    expect(JSON.stringify((JSON.parse(body) as { kenmerken: object }).kenmerken)).toBe(JSON.stringify(kenmerken));
    expect(characteristics.get('constructor')).toBe('c');
  });
});

describe('names of characteristics', () => {
  it.each([
    ['object_type registered, objectType sent', 'objecten', { objectType: 'a' }, { objectType: 'a' }],
    ['object_type registered, object_type sent', 'objecten', { object_type: 'a' }, { objectType: 'a' }],
    ['objectType registered, objectType sent', 'camel', { objectType: 'a' }, { objectType: 'a' }],
    ['objectType registered, object_type sent', 'camel', { object_type: 'a' }, { objectType: 'a' }],
    ['ObjectType sent', 'objecten', { ObjectType: 'a' }, { ObjectType: 'a' }],
    ['the same name twice: the last counts', 'objecten', { object_type: 'a', objectType: 'b' }, { objectType: 'b' }],
  ])('%s', (_, kanaal, sent, forwarded) => {
    const { body, characteristics } = accepted({ ...valid, kanaal, kenmerken: sent });
    expect((JSON.parse(body) as { kenmerken: object }).kenmerken).toEqual(forwarded);
    expect([...characteristics]).toEqual([['object_type', Object.values(forwarded)[0]]]);
  });

  it('keep their own spelling where the one that is sent is that of another', () => {
    const sent = (kenmerken: object) => /"kenmerken":({[^}]*})/.exec(accepted({ ...valid, kenmerken }).body)![1];
    expect(sent({ punt_x_y: '1' })).toBe('{"puntXY":"1"}');
    expect(sent({ punt_x_y: '1', puntXY: '2' })).toBe('{"punt_x_y":"1","puntXY":"2"}');
    expect(sent({ puntXY: '2', punt_x_y: '1' })).toBe('{"puntXY":"2","punt_x_y":"1"}');
    expect(sent({ punt_x_y: '1', punt_xy: '2' })).toBe('{"puntXY":"1","puntXy":"2"}');
  });

  it.each([
    ['none', {}],
    ['a part of the known ones', { zaaktype: 'a' }],
    ['all the known ones', { zaaktype: 'a', bronorganisatie: 'b' }],
    ['all the known ones and another', { zaaktype: 'a', bronorganisatie: 'b', other: 'c' }],
  ])('passes with %s', (_, kenmerken) => {
    expect(refused({ ...valid, kanaal: 'zaken', kenmerken })).toEqual([]);
  });

  it.each([
    ['an unknown name alone', { other: 'a' }],
    ['an unknown name with a part of the known ones', { zaaktype: 'a', other: 'b' }],
  ])('is refused with %s', (_, kenmerken) => {
    expect(refused({ ...valid, kanaal: 'zaken', kenmerken })).toEqual(['kenmerken kenmerken_inconsistent']);
  });
});

describe('what is refused', () => {
  it.each<[string, object, string[]]>([
    [
      'an empty object',
      {},
      ['kanaal', 'hoofdObject', 'resource', 'resourceUrl', 'actie', 'aanmaakdatum'].map((name) => `${name} required`),
    ],
    ['an unknown kanaal', { ...valid, kanaal: 'nix' }, ['kanaal message_kanaal']],
    ['a kanaal that is too long', { ...valid, kanaal: 'x'.repeat(51) }, ['kanaal max_length']],
    ['a kanaal that is null', { ...valid, kanaal: null }, ['kanaal null']],
    ['a hoofdObject that is no URL', { ...valid, hoofdObject: 'zaak 1' }, ['hoofdObject invalid']],
    ['a resourceUrl of another scheme', { ...valid, resourceUrl: 'ftp://example.org/' }, ['resourceUrl invalid']],
    ['a resource that is too long', { ...valid, resource: 'x'.repeat(101) }, ['resource max_length']],
    ['an actie that is blank', { ...valid, actie: ' ' }, ['actie blank']],
    ['an aanmaakdatum that is none', { ...valid, aanmaakdatum: 'now' }, ['aanmaakdatum invalid']],
    ['an aanmaakdatum ahead', { ...valid, aanmaakdatum: '2025-06-01T12:00:01Z' }, ['aanmaakdatum future_not_allowed']],
    ['kenmerken that are null', { ...valid, kenmerken: null }, ['kenmerken null']],
    ['kenmerken that are a list', { ...valid, kenmerken: [] }, ['kenmerken not_a_dict']],
    ['a value that is null', { ...valid, kenmerken: { a: null } }, ['kenmerken.a null']],
    ['a value that is true', { ...valid, kenmerken: { a: true } }, ['kenmerken.a invalid']],
    ['a value that is an object', { ...valid, kenmerken: { a: {} } }, ['kenmerken.a invalid']],
    ['a value that is too long', { ...valid, kenmerken: { a: 'x'.repeat(1001) } }, ['kenmerken.a max_length']],
    ['a value with U+0000', { ...valid, kenmerken: { a: '\0' } }, ['kenmerken.a invalid']],
    ['a name with half a surrogate pair', { ...valid, kenmerken: { '\ud800': 'a' } }, ['kenmerken invalid']],
    ['a source that is blank', { ...valid, source: '' }, ['source blank']],
  ])('%s', (_, raw, expected) => {
    expect(refused(raw)).toEqual(expected);
  });

  it('is not an empty value', () => {
    expect(refused({ ...valid, kenmerken: { a: '' } })).toEqual([]);
  });

  it('is not an aanmaakdatum ahead by no more than the leeway', () => {
    const ahead = { ...valid, aanmaakdatum: '2025-06-01T12:00:05.500Z' };
    expect(parse(ahead, 5).kind).toBe('parsed');
    expect(parse(ahead, 4).kind).toBe('invalid');
  });

  it('is not an aanmaakdatum ahead by what two right clocks may differ', () => {
    expect(parse({ ...valid, aanmaakdatum: '2025-06-01T12:00:00.500Z' }).kind).toBe('parsed');
    expect(parse({ ...valid, aanmaakdatum: '2025-06-01T12:00:00.501Z' }).kind).toBe('invalid');
  });

  it('may depend on a newer catalogue only where the error is about channels', () => {
    expect(parse({ ...valid, kanaal: 'nix' })).toMatchObject({ dependsOnChannels: true });
    expect(parse({ ...valid, kanaal: 'zaken', kenmerken: { x: '1' } })).toMatchObject({ dependsOnChannels: true });
    expect(parse({ ...valid, kanaal: 'nix', actie: '' })).toMatchObject({ dependsOnChannels: false });
  });

  it('depends on the clock when all else that can be read is fine', () => {
    const ahead = { ...valid, aanmaakdatum: '2025-06-01T12:00:01Z' };
    expect(parse(ahead)).toMatchObject({ dependsOnClock: true, dependsOnChannels: false });
    expect(parse({ ...ahead, kanaal: 'nix' })).toMatchObject({ dependsOnClock: true });
    expect(parse({ ...ahead, actie: '' })).toMatchObject({ dependsOnClock: false });
    expect(parse({ ...valid, kanaal: 'nix' })).toMatchObject({ dependsOnClock: false });
  });
});
