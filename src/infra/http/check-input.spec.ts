import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { checkInput, paramsOf } from './check-input.js';
import { longestParamName, mostInvalidParams, ValidationProblem, wholeInput } from './problem.js';

const schema = z.strictObject({
  name: z.string().min(1).max(5),
  size: z.union([z.literal(true), z.number().min(1).max(9)], { error: 'Must be 1 to 9, or true.' }).optional(),
  kinds: z.array(z.enum(['big', 'small'])).optional(),
  place: z.strictObject({ street: z.string() }).optional(),
  id: z.uuid().optional(),
  few: z.array(z.string()).max(2).optional(),
  way: z
    .discriminatedUnion('kind', [z.object({ kind: z.literal('road') }), z.object({ kind: z.literal('rail') })])
    .optional(),
});

function refusalOf(input: unknown): [string, string][] {
  try {
    checkInput(schema, input);
  } catch (error) {
    if (error instanceof ValidationProblem) {
      return (error.extra.invalidParams ?? []).map(({ name, code }): [string, string] => [name, code]);
    }
    throw error;
  }
  return [];
}

describe('checking the input of a call', () => {
  it('returns what the schema makes of it', () => {
    expect(checkInput(schema, { name: 'one', size: 3 })).toEqual({ name: 'one', size: 3 });
  });

  it.each<[string, unknown, [string, string][]]>([
    ['a field that is missing', {}, [['name', 'required']]],
    ['null where there must be a value', { name: null }, [['name', 'null']]],
    ['another type', { name: 3 }, [['name', 'invalid']]],
    ['an empty text', { name: '' }, [['name', 'blank']]],
    ['a text that is too long', { name: 'longer' }, [['name', 'max_length']]],
    ['a number below its limit', { name: 'n', size: 0 }, [['size', 'min_value']]],
    ['a number above its limit', { name: 'n', size: 10 }, [['size', 'max_value']]],
    ['a value that fits no alternative', { name: 'n', size: false }, [['size', 'invalid']]],
    ['a value that is not a list', { name: 'n', kinds: 'big' }, [['kinds', 'not_a_list']]],
    ['a value that is not a list but has a length', { name: 'n', few: 'abc' }, [['few', 'not_a_list']]],
    ['a list that is too long', { name: 'n', few: ['a', 'b', 'c'] }, [['few', 'max_length']]],
    ['a value that is not one of the choices', { name: 'n', kinds: ['big', 'huge'] }, [['kinds.1', 'invalid_choice']]],
    ['a value that is not an object', { name: 'n', place: 'here' }, [['place', 'not_a_dict']]],
    ['a text of another form', { name: 'n', id: '7' }, [['id', 'invalid']]],
    ['an unknown field', { name: 'n', nmae: 'n' }, [['nmae', 'unknown']]],
    ['an unknown field of a nested object', { name: 'n', place: { street: 's', nr: 1 } }, [['place.nr', 'unknown']]],
    [
      'names that JavaScript knows',
      JSON.parse('{"name":"n","__proto__":{},"constructor":1}'),
      [
        ['__proto__', 'unknown'],
        ['constructor', 'unknown'],
      ],
    ],
    ['a kind that there is not', { name: 'n', way: { kind: 'air' } }, [['way.kind', 'invalid_choice']]],
    ['a kind that is missing', { name: 'n', way: {} }, [['way.kind', 'required']]],
    ['a kind that is null', { name: 'n', way: { kind: null } }, [['way.kind', 'null']]],
    ['an input that is no object', null, [[wholeInput, 'null']]],
  ])('refuses %s', (_what, input, expected) => {
    expect(refusalOf(input)).toEqual(expected);
  });

  it('names every wrong field at once', () => {
    expect(refusalOf({ size: 0, kinds: 1, more: 1 })).toEqual([
      ['name', 'required'],
      ['size', 'min_value'],
      ['kinds', 'not_a_list'],
      ['more', 'unknown'],
    ]);
  });

  it('names the first of very many wrong fields, and cuts long names', () => {
    const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, nr) => [`${nr} ${'x'.repeat(1000)}`, nr]));
    const refusal = refusalOf({ ...many, size: 0 });
    expect(refusal.slice(0, 3)).toEqual([
      ['name', 'required'],
      ['size', 'min_value'],
      [`0 ${'x'.repeat(longestParamName - 2)}`, 'unknown'],
    ]);
    expect(refusal).toHaveLength(mostInvalidParams);
  });

  it('says what is wrong with the key of a record, and cuts it', () => {
    const { error } = z
      .record(z.string().max(5), z.string())
      .safeParse({ ['x'.repeat(100_000)]: '' }, { reportInput: true });
    expect(paramsOf(error!).map(({ name, code }) => [name, code])).toEqual([
      ['x'.repeat(longestParamName), 'max_length'],
    ]);
  });

  it('reads the place of each of very many wrong values at most twice', () => {
    let reads = 0;
    const issues = Array.from({ length: 20_000 }, (_, nr) => ({
      // A list is wanted, and its length looked at, as zod does it.
      ...(nr % 2 === 0
        ? { code: 'invalid_type', expected: 'array', message: '' }
        : { code: 'too_small', origin: 'string', minimum: 1, message: '' }),
      input: '',
      get path() {
        reads++;
        return ['list', nr - (nr % 2)];
      },
    })) as z.core.$ZodIssue[];
    const error = new z.ZodError(issues);
    reads = 0;
    expect(new Set(paramsOf(error).map(({ code }) => code))).toEqual(new Set(['not_a_list']));
    expect(reads).toBeLessThanOrEqual(2 * issues.length);
  });
});
