import { describe, expect, it } from 'vitest';
import { arrayOf } from './binary-array.js';
import { rowsOf, statement, valuesOf } from './statement.js';

describe('a statement with named parameters', () => {
  it('numbers each name once, in the order of their first use', () => {
    const { text, parameters } = statement('find', 'SELECT $b::int, $a::text, $b::int');
    expect(text).toBe('SELECT $1::int, $2::text, $1::int');
    expect(parameters).toEqual(['b', 'a']);
  });

  it('is given its values by name, null among them', () => {
    expect(valuesOf(statement('find', 'SELECT $b, $a'), { a: null, b: 1 })).toEqual([1, null]);
  });

  it('refuses to run while something is missing', () => {
    expect(() => valuesOf(statement('find', 'SELECT $a'), {})).toThrow('statement find: nothing was given for $a');
  });
});

describe('rows for a statement', () => {
  const rows = rowsOf<{ id: string; size: number }>('item', {
    id: ['text', (item) => item.id],
    size: ['int', (item) => item.size],
  });

  it('are one array a column, named by the same list that binds them', () => {
    const find = statement('find', `SELECT id FROM ${rows.from} WHERE (${rows.array('size')})[1] > $least`);
    expect(find.text).toBe('SELECT id FROM unnest($1::text[], $2::int[]) AS item (id, size) WHERE ($2::int[])[1] > $3');
    const values = {
      ...rows.bind([
        { id: 'x', size: 1 },
        { id: 'y', size: 2 },
      ]),
      least: 0,
    };
    expect(valuesOf(find, values)).toEqual([arrayOf('text', ['x', 'y']), arrayOf('int', [1, 2]), 0]);
  });

  it('have no other columns', () => {
    expect(() => rows.array('other')).toThrow('item has no column other');
  });
});
