import { describe, expect, it } from 'vitest';
import { MultiMap } from './multi-map.js';

describe('a map with several items under a key', () => {
  it('has the items of a key until each is removed, and then nothing of it', () => {
    const map = new MultiMap<string, { nr: number }>();
    const items = [1, 2, 3].map((nr) => ({ nr }));
    for (const item of items) map.add('a', item);
    map.add('b', items[0]!);
    expect([map.size, map.countOf('a'), map.countOf('b'), map.countOf('c')]).toEqual([4, 3, 1, 0]);
    expect(itemsOf('a')).toEqual(items);
    expect([itemsOf('b'), itemsOf('c')]).toEqual([[items[0]], []]);

    map.remove('a', items[1]!);
    expect(itemsOf('a')).toEqual([items[0], items[2]]);
    for (const item of [items[0]!, items[2]!]) map.remove('a', item);
    map.remove('b', items[0]!);
    expect(map).toEqual(new MultiMap());

    function itemsOf(key: string) {
      const found: { nr: number }[] = [];
      map.visit(key, (item) => found.push(item));
      return found;
    }
  });
});
