import { describe, expect, it } from 'vitest';
import { checkInput } from './check-input.js';
import { namePageQuery, pageByName } from './name-page.js';

const query = namePageQuery('things', 'name');
const things = {
  nameOf: String,
  textsOf: (name: string) => [name],
  isAfter: (one: string, other: string) => one > other,
};
const pageOf = (all: string[], asked: Record<string, string>) => pageByName(all, checkInput(query, asked), things);

describe('a page of a list by name', () => {
  it('has all of it without a limit', () => {
    expect(pageOf(['a', 'b'], {})).toEqual({ items: ['a', 'b'], count: 2, nextCursor: null });
    expect(pageOf([], { limit: '1' })).toEqual({ items: [], count: 0, nextCursor: null });
  });

  it('goes on behind the last of the page before, which may be gone', () => {
    const first = pageOf(['a', 'é ☂', 'z'], { limit: '2' });
    expect(first).toMatchObject({ items: ['a', 'é ☂'], count: 3 });
    const cursor = first.nextCursor!;
    expect(pageOf(['a', 'b', 'z', '☂'], { limit: '2', cursor })).toEqual({
      items: ['☂'],
      count: 4,
      nextCursor: null,
    });
  });

  it('finds a part of a text in any case of letters, and counts what fits', () => {
    const all = ['Één', 'één meer', 'twee', 'ZÉÉN'];
    const { nextCursor, ...first } = pageOf(all, { text: ' één ', limit: '1' });
    expect(first).toEqual({ items: ['Één'], count: 3 });
    expect(nextCursor).not.toBeNull();
  });

  it.each(['', '%', 'AAAA', 'YQ==', 'YR', '_w'])('takes no cursor that it did not give: %j', (cursor) => {
    expect(query.safeParse({ cursor }).success).toBe(false);
  });
});
