import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { atMost } from './at-most.js';
import { paramsOf } from './check-input.js';

const schema = z.strictObject({
  list: atMost(2, z.array(z.string()).max(2)),
  record: atMost(2, z.record(z.string(), z.string())).default({}),
});

const refusalOf = (input: unknown) =>
  paramsOf(schema.safeParse(input, { reportInput: true }).error!).map(({ name, code }) => [name, code]);

/** Fails whoever looks at one of its entries. */
const unseen = <Entries extends object>(entries: Entries): Entries =>
  new Proxy(entries, {
    get(target, key) {
      if (key in target && /^\d+$/.test(String(key))) throw new Error(`Looked at ${String(key)}`);
      return Reflect.get(target, key) as unknown;
    },
  });

describe('a list or a record of at most so many entries', () => {
  it('is read where it has no more', () => {
    const input = { list: ['a', 'b'], record: { 1: 'a', 2: 'b' } };
    expect(schema.parse(input)).toEqual(input);
  });

  it('is refused without a look at any entry where it has more', () => {
    expect(refusalOf({ list: unseen([1, 2, 3]), record: unseen({ 1: 1, 2: 2, 3: 3 }) })).toEqual([
      ['list', 'max_length'],
      ['record', 'max_length'],
    ]);
  });

  it.each([
    [{ list: 'abc' }, ['list', 'not_a_list']],
    [{ list: null }, ['list', 'null']],
    [{}, ['list', 'required']],
    [{ list: [], record: 1 }, ['record', 'invalid']],
  ])('is refused where it is no list or record, as without a limit: %j', (input, expected) => {
    expect(refusalOf(input)).toEqual([expected]);
  });

  it('is documented as the schema inside of it', () => {
    expect(z.toJSONSchema(schema, { io: 'input' })).toMatchObject({
      properties: { list: { type: 'array', maxItems: 2 } },
      required: ['list'],
    });
  });
});
