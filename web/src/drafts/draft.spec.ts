import { describe, expect, it } from 'vitest';
import { ApiProblem } from '../api/problem.ts';
import { changesBetween, isSame, saveOver, theirsIn, typedAfter, typedSince, type Read } from './draft.ts';

interface Form {
  name: string;
  days?: number | undefined;
}

const read = (value: Form, tag = 'first'): Read<Form> => ({ value, tag });
const changedMeanwhile = new ApiProblem({
  status: 412,
  code: 'changed-meanwhile',
  title: '',
  detail: '',
  invalidParams: [],
});

/** An API that has a value, and refuses a tag that is not the present one. */
function stored(first: Read<Form>) {
  let [now, writes] = [first, 0];
  return {
    set: (next: Read<Form>) => (now = next),
    written: () => writes,
    readAgain: () => Promise.resolve(now),
    save: (value: Form, tag: string | undefined) => {
      if (tag !== now.tag) return Promise.reject(changedMeanwhile);
      writes += 1;
      now = { value, tag: `written ${writes}` };
      return Promise.resolve(now);
    },
  };
}

describe('what is typed into a form', () => {
  it('is kept over what it was typed over, whatever others do', () => {
    const typed = typedAfter(undefined, { name: 'a' }, read({ name: '' }));
    expect(typedAfter(typed, { name: 'ab' }, read({ name: 'theirs' }, 'second'))).toEqual({
      value: { name: 'ab' },
      over: read({ name: '' }),
    });
  });

  it('is nothing where it is what there was: the form follows again', () => {
    const typed = typedAfter(undefined, { name: 'a' }, read({ name: '' }));
    expect(typedAfter(typed, { name: '' }, read({ name: '' }))).toBeUndefined();
  });

  it('is told of what somebody else made of it, unless that is the same', () => {
    const typed = typedAfter(undefined, { name: 'mine' }, read({ name: '' }));
    expect(theirsIn(typed, read({ name: '' }, 'another tag'))).toBeUndefined();
    expect(theirsIn(typed, read({ name: 'mine' }, 'second'))).toBeUndefined();
    expect(theirsIn(typed, read({ name: 'theirs' }, 'second'))).toEqual(read({ name: 'theirs' }, 'second'));
    expect(theirsIn(undefined, read({ name: 'theirs' }))).toBeUndefined();
  });

  it('is nobody else’s where it is stored as it was typed, whatever else the screen has of it', () => {
    const typed = typedAfter(
      undefined,
      { name: ' mine', key: 'new-1' },
      { value: { name: '', key: '' }, tag: 'first' },
    );
    const current = { value: { name: 'mine', key: 'filter-0' }, tag: 'second' };
    expect(theirsIn(typed, current)).toEqual(current);
    expect(theirsIn(typed, current, ({ name }) => name.trim())).toBeUndefined();
  });

  it('stays where it was typed while it was being saved', () => {
    const typed = typedAfter(undefined, { name: 'mine, and more' }, read({ name: '' }));
    const saved = read({ name: 'mine' }, 'second');
    expect(typedSince(typed, { name: 'mine' }, saved)).toEqual({ value: { name: 'mine, and more' }, over: saved });
    expect(typedSince(typed, { name: 'mine, and more' }, saved)).toBeUndefined();
  });

  it('is compared as JSON, whatever the order of its fields', () => {
    expect(isSame({ name: 'a', days: undefined }, { name: 'a' })).toBe(true);
    expect(isSame({ name: 'a', days: 1 }, { days: 1, name: 'a' })).toBe(true);
    expect(isSame(['a', 'b'], ['b', 'a'])).toBe(false);
  });
});

it('what others changed is told field by field, also where one came or went', () => {
  const before = { label: 'Cases', scopes: ['a', 'b'], days: 1 };
  expect(changesBetween(before, { label: 'Cases', scopes: ['a'], email: 'x' })).toEqual([
    { name: 'scopes', before: ['a', 'b'], after: ['a'] },
    { name: 'days', before: 1, after: undefined },
    { name: 'email', before: undefined, after: 'x' },
  ]);
});

describe('saving', () => {
  it('goes over a change of something that the form does not show', async () => {
    const api = stored(read({ name: '' }, 'changed beside it'));
    expect(await saveOver({ name: 'mine' }, read({ name: '' }), api)).toEqual(read({ name: 'mine' }, 'written 1'));
  });

  it('is refused where somebody else changed the same, and carried out over what has been shown', async () => {
    const api = stored(read({ name: 'theirs' }, 'second'));
    await expect(saveOver({ name: 'mine' }, read({ name: '' }), api)).rejects.toBe(changedMeanwhile);
    expect(api.written()).toBe(0);
    expect(await saveOver({ name: 'mine' }, read({ name: 'theirs' }, 'second'), api)).toMatchObject({
      value: { name: 'mine' },
    });
  });

  it('is done where a try before was carried out, and its answer lost', async () => {
    const api = stored(read({ name: 'mine' }, 'written by that try'));
    expect(await saveOver({ name: 'mine' }, read({ name: '' }), api)).toEqual(
      read({ name: 'mine' }, 'written by that try'),
    );
    expect(api.written()).toBe(0);
    const asStored = ({ name }: Form) => name.trim();
    expect(await saveOver({ name: ' mine ' }, read({ name: '' }), { ...api, asStored })).toEqual(
      read({ name: 'mine' }, 'written by that try'),
    );
    expect(api.written()).toBe(0);
  });
});
