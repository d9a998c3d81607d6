import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { canonicalName } from '../channels/filter-names.js';
import { ChannelSubscribers } from './channel-subscribers.js';
import { demandsOf, meets } from './match-filters.js';

type Filters = Record<string, string>;
type Characteristics = ReadonlyMap<string, string>;

/** Subscriptions as the index has them, and beside it the plain definition of what they match. */
class Channel {
  readonly subscribers = new ChannelSubscribers();
  private readonly entriesOf = new Map<string, Filters[]>();

  subscribe(id: string, ...entries: Filters[]): void {
    this.unsubscribe(id);
    this.entriesOf.set(id, entries);
    this.subscribers.add(
      id,
      entries.map((filters) => demandsOf({ filters })),
    );
  }

  unsubscribe(id: string): void {
    this.subscribers.remove(id);
    this.entriesOf.delete(id);
  }

  found(characteristics: Characteristics): string[] {
    return this.subscribers.match(characteristics).toSorted();
  }

  /** Every subscription asked, one after the other. */
  byDefinition(characteristics: Characteristics): string[] {
    const met = [...this.entriesOf].filter(([, entries]) =>
      entries.some((filters) => meets(demandsOf({ filters }), characteristics)),
    );
    return met.map(([id]) => id).toSorted();
  }
}

/** Counts how often a match reads a value of the notification. */
class Watched extends Map<string, string> {
  reads = 0;

  override get(name: string): string | undefined {
    this.reads++;
    return super.get(name);
  }
}

const ids = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
// Few of each, so that they meet; names that every object has, and values that look like the index's own keys.
const names = fc.constantFrom('zaaktype', 'objectType', 'object_type', 'bron', '__proto__');
const values = fc.oneof(fc.constantFrom('a', ''), fc.constantFrom('A', '1:a', 'a1:a', '1:a1:a', '__proto__', 'é'));
const anyFilters = fc.dictionary(names, fc.oneof({ weight: 4, arbitrary: values }, fc.constant('*')), { maxKeys: 4 });
// Most entries of a channel have the same names, and a few are found in another way than many.
const usualFilters = fc.record({ zaaktype: values, objectType: values, bron: values });
const filters = fc.oneof(usualFilters, anyFilters);
const notifications = fc
  .array(fc.tuple(names.map(canonicalName), values), { maxLength: 4 })
  .map((characteristics) => new Map(characteristics));

/** A subscription made, replaced or removed, and then a notification. */
const steps = fc.record({
  id: ids,
  entries: fc.option(fc.array(filters, { maxLength: 12 }), { freq: 3 }),
  characteristics: notifications,
});

const map = (characteristics: Filters): Characteristics => new Map(Object.entries(characteristics));

describe('the subscribers of a channel', () => {
  it('are found exactly where the definition of matching says so, through every change', () => {
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 25, size: 'max' }), (history) => {
        const channel = new Channel();
        for (const { id, entries, characteristics } of history) {
          if (entries) channel.subscribe(id, ...entries);
          else channel.unsubscribe(id);
          expect(channel.found(characteristics)).toEqual(channel.byDefinition(characteristics));
        }
      }),
      { numRuns: 200 },
    );
  });

  it('leave nothing behind when they are removed', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(filters, { maxLength: 4 }), { maxLength: 20 }),
        notifications,
        (subscriptions, characteristics) => {
          const [channel, untouched] = [new Channel(), new Channel()];
          for (const [nr, entries] of subscriptions.entries()) channel.subscribe(String(nr), ...entries);
          expect(channel.found(characteristics)).toEqual(channel.byDefinition(characteristics));
          for (const nr of subscriptions.keys()) channel.unsubscribe(String(nr));
          expect(untouched.found(characteristics)).toEqual([]);
          expect(channel.subscribers).toEqual(untouched.subscribers);
        },
      ),
    );
  });

  it('are given once, however many of their entries are met', () => {
    const channel = new Channel();
    channel.subscribe('all', { zaaktype: 'a' }, { bronorganisatie: '1' }, { zaaktype: 'a', bronorganisatie: '1' });
    channel.subscribe('any', {}, { zaaktype: '*' }, { zaaktype: 'a' });
    const characteristics = map({ zaaktype: 'a', bronorganisatie: '1' });
    expect(channel.found(characteristics)).toEqual(['all', 'any']);
    expect(channel.found(characteristics)).toEqual(['all', 'any']); // the next notification as well
  });

  describe('of ten thousand, are only looked at where they can match', () => {
    const count = 10_000;
    const shared = { bronorganisatie: '1' };
    it.each<[string, (nr: number) => Filters, Filters, number]>([
      ['each with its own value', (nr) => ({ zaaktype: `z${nr}` }), { zaaktype: 'z7' }, 1],
      [
        'one shared value, and one of its own',
        (nr) => ({ ...shared, zaaktype: `z${nr}` }),
        { ...shared, zaaktype: 'z7' },
        1,
      ],
      ['a value that nobody asked for', (nr) => ({ ...shared, zaaktype: `z${nr}` }), { ...shared, zaaktype: 'Z7' }, 0],
      ['a value that all share', () => ({ ...shared, zaaktype: 'z' }), { ...shared, zaaktype: 'z7' }, 0],
      [
        'a name that the notification lacks',
        (nr) => ({ extra: 'x', ...shared, zaaktype: `z${nr}` }),
        { ...shared, zaaktype: 'z7' },
        1,
      ],
      [
        'values of a thousand characters',
        (nr) => ({ ...shared, zaaktype: 'z'.repeat(995) + nr }),
        { ...shared, zaaktype: `${'z'.repeat(995)}7` },
        1,
      ],
    ])('%s', (_, filtersOf, characteristics, expected) => {
      const channel = new Channel();
      for (let nr = 0; nr < count; nr++) channel.subscribe(String(nr), filtersOf(nr));
      const watched = new Watched(Object.entries(characteristics));
      channel.subscribers.match(watched); // makes what the first notification of its kind needs
      watched.reads = 0;
      expect(channel.subscribers.match(watched)).toHaveLength(expected);
      expect(watched.reads).toBeLessThan(10);
    });
  });
});
