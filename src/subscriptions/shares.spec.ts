import { describe, expect, it } from 'vitest';
import { ChangingShares, Shares, type Part } from './shares.js';

const part = (ownerClientId: string, bytes: number): Part => ({ ownerClientId, bytes });

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
});
