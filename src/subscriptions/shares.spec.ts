import { describe, expect, it } from 'vitest';
import { ChangingShares, Shares, type Part } from './shares.js';

const part = (ownerClientId: string, bytes: number): Part => ({ ownerClientId, bytes, channels: [] });

/** With an entry on the channel for each of these sets of names. */
const naming = (ownerClientId: string, channel: string, ...sets: string[][]): Part => ({
  ...part(ownerClientId, 1),
  channels: sets.map((names) => ({ channel, filters: Object.fromEntries(names.map((name) => [name, 'x'])) })),
});

/** A memory with these parts, by id. */
function memoryOf(parts: Record<string, Part>) {
  const shares = new Shares();
  Object.values(parts).forEach((one) => shares.add(one));
  return { shares, partOf: (id: string): Part | undefined => parts[id] };
}

const grown = (shares: ChangingShares) =>
  [...shares.grown()].map(({ clientId, by, to }) => [
    clientId,
    [by.subscriptions, by.bytes],
    [to.subscriptions, to.bytes],
  ]);

const grownNames = (shares: ChangingShares) =>
  [...shares.grownNameSets()].map(({ clientId, channel, by, to }) => [clientId, channel, by, to]);

describe('the shares of applications within a change', () => {
  it('are those of memory, with what is made, changed and deleted', () => {
    const shares = new ChangingShares(
      memoryOf({ 1: part('one', 10), 2: part('one', 20), 3: part('two', 5) }),
      new Map(),
    );
    shares.replace('1', part('one', 11));
    shares.replace('4', part('one', 100));
    shares.replace('3', undefined);
    expect(grown(shares)).toEqual([
      ['one', [1, 101], [3, 131]],
      ['two', [-1, -5], [0, 0]],
    ]);
  });

  it('have what others have changed since memory was read, once, also where memory has read some of it meanwhile', () => {
    const changed = new Map([
      ['1', part('one', 30)],
      ['2', undefined],
      ['5', part('one', 7)],
    ]);
    for (const known of [
      { 1: part('one', 10), 2: part('one', 20) },
      { 1: part('one', 30) },
      Object.fromEntries(changed),
    ]) {
      const parts = Object.fromEntries(Object.entries(known).filter(([, one]) => one)) as Record<string, Part>;
      const shares = new ChangingShares(memoryOf(parts), changed);
      shares.replace('1', part('one', 31));
      expect(grown(shares)).toEqual([['one', [0, 1], [2, 38]]]);
    }
  });

  it('move with a subscription that gets another owner', () => {
    const shares = new ChangingShares(memoryOf({ 1: part('one', 10) }), new Map());
    shares.replace('1', part('two', 10));
    expect(grown(shares)).toEqual([
      ['one', [-1, -10], [0, 0]],
      ['two', [1, 10], [1, 10]],
    ]);
  });

  it('count the sets of names that entries have, of each channel, once, however many have one', () => {
    const memory = memoryOf({
      1: naming('one', 'zaken', ['a', 'b'], ['a']),
      2: naming('one', 'zaken', ['b', 'a']),
      3: naming('two', 'zaken', ['c']),
    });
    const replaced = (id: string, ...parts: (Part | undefined)[]) => {
      const shares = new ChangingShares(memory, new Map());
      for (const one of parts) shares.replace(id, one);
      return grownNames(shares);
    };
    expect(replaced('4', naming('one', 'zaken', ['c'], ['a'], ['objectType'], ['object_type']))).toEqual([
      ['one', 'zaken', 2, 4],
    ]);
    expect(replaced('4', naming('one', 'besluiten', ['a']))).toEqual([['one', 'besluiten', 1, 1]]);
    expect(replaced('2', undefined)).toEqual([['one', 'zaken', 0, 2]]);
    expect(replaced('1', undefined)).toEqual([['one', 'zaken', -1, 1]]);
    expect(replaced('1', naming('two', 'zaken', ['a'], ['c']))).toEqual([
      ['one', 'zaken', -1, 1],
      ['two', 'zaken', 1, 2],
    ]);
    expect(replaced('1', naming('one', 'zaken', ['a'], ['a', 'b']))).toEqual([]);
  });

  it('count the sets of names that others have brought since memory was read', () => {
    const [before, after] = [naming('one', 'zaken', ['a'], ['b']), naming('one', 'zaken', ['b'], ['c'], ['d'])];
    for (const known of [before, after]) {
      const shares = new ChangingShares(memoryOf({ 1: known }), new Map([['1', after]]));
      shares.replace('2', naming('one', 'zaken', ['a'], ['d']));
      expect(grownNames(shares)).toEqual([['one', 'zaken', 1, 4]]);
    }
  });

  it('count the sets of names that a match looks at: neither `*` nor the other entries of one that gets everything', () => {
    const shares = new ChangingShares(memoryOf({}), new Map());
    const filters: Record<string, string>[] = [{ a: 'x', b: '*' }, { a: 'y' }];
    const entriesOf = (...all: Record<string, string>[]) => all.map((one) => ({ channel: 'zaken', filters: one }));
    shares.replace('1', { ...part('one', 1), channels: entriesOf(...filters) });
    shares.replace('2', { ...part('two', 1), channels: entriesOf(...filters, { c: 'x' }, { a: '*' }) });
    expect(grownNames(shares)).toEqual([
      ['one', 'zaken', 1, 1],
      ['two', 'zaken', 0, 0],
    ]);
  });

  it('count what demands no name of its channel: each subscription that gets everything, and entries with other names', () => {
    const memory = memoryOf({ 1: naming('one', 'zaken', []), 2: naming('one', 'zaken', ['other'], ['a', 'other']) });
    const shares = new ChangingShares(memory, new Map([['3', naming('one', 'zaken', [])]]));
    shares.replace('4', naming('one', 'zaken', [], ['a']));
    shares.replace('5', naming('one', 'zaken', ['a']));
    shares.replace('6', naming('two', 'zaken', ['a', 'b'], ['b']));
    shares.replace('7', naming('one', 'besluiten', ['a']));
    const grown = (names: Record<string, Set<string>>) =>
      [...shares.grownUnfiltered((name) => names[name])].map(({ clientId, channel, by, to }) => [
        clientId,
        channel,
        by,
        to,
      ]);
    expect(grown({ zaken: new Set(['a', 'b']), besluiten: new Set() })).toEqual([
      ['one', 'zaken', 1, 4],
      ['one', 'besluiten', 1, 1],
    ]);
    expect(grown({})).toEqual([['one', 'zaken', 1, 3]]);
  });

  it('have no more of what demands nothing where it only comes in the place of another', () => {
    const shares = new ChangingShares(memoryOf({ 1: naming('one', 'zaken', []) }), new Map());
    shares.replace('1', naming('one', 'zaken', ['other']));
    expect([...shares.grownUnfiltered(() => new Set(['a']))]).toEqual([]);
  });
});
