import { describe, expect, it } from 'vitest';
import type { Channel } from '../channels/channel.js';
import type { ParsedNotification } from './parse-notification.js';
import { requestHashOf, termsOf, untilPast } from './terms.js';

function notification(channel: Partial<Channel> = {}, parts: Partial<ParsedNotification> = {}): ParsedNotification {
  return {
    channel: {
      id: 'f0e0a0d2-7ad5-4b0e-8a2b-6ce7dd7bd1b4',
      name: 'cases',
      documentationLink: '',
      filters: [],
      canonicalFilters: new Set(),
      deduplication: null,
      maxAgeSeconds: null,
      bodyRetentionDays: null,
      ...channel,
    },
    characteristics: new Map([['object_type', 'a']]),
    hoofdObject: 'http://one/',
    resource: 'status',
    resourceUrl: 'http://two/',
    actie: 'create',
    createdAt: 1_000_000,
    body: '{"actie":"create","kenmerken":{"objectType":"a","phase":"b"}}',
    ...parts,
  };
}

const rule = (...fields: string[]) => ({ deduplication: { fields, withinSeconds: 60 } });
const contentOf = (...arguments_: Parameters<typeof notification>) =>
  termsOf(notification(...arguments_), nothing).content;

const nothing = { request: null, notBefore: null };

describe('the terms of a notification', () => {
  it('are empty when it is simply to be sent now', () => {
    expect(termsOf(notification(), nothing)).toEqual({
      request: null,
      content: null,
      notBefore: null,
      keepsPlace: false,
      expiresAt: null,
    });
  });

  it('end with the age its channel allows, counted from its creation', () => {
    expect(termsOf(notification({ maxAgeSeconds: 30 }), nothing)).toMatchObject({ expiresAt: 1_030_000 });
  });

  it('keep the content for as long as the rule says', () => {
    expect(contentOf(rule('actie'))).toMatchObject({ keepSeconds: 60 });
  });

  it('tell channels, rules and values apart', () => {
    const keys = [
      contentOf(rule('actie')),
      contentOf({ ...rule('actie'), name: 'other' }),
      contentOf(rule('actie'), { actie: 'update' }),
      contentOf(rule('actie', 'resource')),
      contentOf(rule('resource'), { resource: 'create' }),
      contentOf(rule('kenmerken.object_type')),
    ].map((content) => content?.key);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('find a characteristic by any spelling of its name, also one with the name of a field', () => {
    const one = contentOf(rule('kenmerken.objectType'), { characteristics: new Map([['object_type', 'a']]) });
    const other = contentOf(rule('kenmerken.objectType'), { characteristics: new Map([['object_type', 'b']]) });
    expect(one).not.toBeNull();
    expect(one).not.toEqual(other);
    expect(contentOf(rule('kenmerken.actie'), { characteristics: new Map([['actie', 'x']]) })).not.toBeNull();
    expect(contentOf(rule('kenmerken.actie'))).toBeNull();
  });

  it('say whether one that is sent later keeps its place: not where its publisher asked for that', () => {
    expect(termsOf(notification(), { ...nothing, notBefore: 5 })).toMatchObject({ notBefore: 5, keepsPlace: false });
    const dated = { ...nothing, notBefore: 5, keepsPlace: true };
    expect(termsOf(notification(), dated)).toMatchObject({ notBefore: 5, keepsPlace: true });
  });

  it('have no content key for a notification that may be replaced', () => {
    expect(termsOf(notification(rule('actie')), { ...nothing, notBefore: 5, isReplaceable: true }).content).toBeNull();
  });
});

describe('the fingerprint of a request', () => {
  it('is of its content and the time it asks for', () => {
    const hashes = [
      requestHashOf(notification(), null),
      requestHashOf(notification(), 5),
      requestHashOf(notification({}, { body: '{"actie":"update","kenmerken":{"objectType":"a","phase":"b"}}' }), null),
      requestHashOf(notification({}, { body: '{"actie":"create","kenmerken":{"objectType":"b","phase":"a"}}' }), null),
      requestHashOf(notification({}, { body: '{"actie":"create","kenmerken":{"__proto__":"a","phase":"b"}}' }), null),
    ];
    expect(new Set(hashes).size).toBe(5);
    expect(requestHashOf(notification(), 5)).toBe(hashes[1]);
  });

  it('is the same in whatever order the members are', () => {
    const other = notification({}, { body: '{"kenmerken":{"phase":"b","objectType":"a"},"actie":"create"}' });
    expect(requestHashOf(other, null)).toBe(requestHashOf(notification(), null));
  });
});

describe('a notification dated a moment ahead', () => {
  const ahead = (ms: number) => untilPast(notification(), 1_000_000 - ms);

  it('waits until its date is past', () => {
    expect([ahead(21), ahead(500)]).toEqual([1_000_000, 1_000_000]);
  });

  it('does not wait for less than clocks can be compared by', () => {
    expect([ahead(20), ahead(0), ahead(-1)]).toEqual([null, null, null]);
  });

  it('does not wait where only TIME_LEEWAY let it pass', () => {
    expect(ahead(501)).toBeNull();
  });
});
