import { describe, expect, it } from 'vitest';
import { differenceOf, familyOf, inOrderOfReferences, makingOf, type Table } from './tables.js';

const table = (name: string, references: string[] = [], columns: Table['columns'] = []): Table => ({
  name,
  columns,
  key: [],
  references,
});

describe('tables that are copied', () => {
  it('come behind those that their foreign keys lead to', () => {
    const tables = [table('a', ['b', 'a']), table('b', ['c']), table('c'), table('d', ['elsewhere'])];
    expect(inOrderOfReferences(tables).map(({ name }) => name)).toEqual(['c', 'd', 'b', 'a']);
    expect(() => inOrderOfReferences([table('a', ['b']), table('b', ['a'])])).toThrow('refer to each other: a, b');
  });

  it.each([
    ['delivery_20261128', 'delivery', 'PARTITION delivery_20261128 FOR VALUES FROM'],
    ['audit_entry_202612', 'audit_entry', "FROM ('2026-12-01T00:00:00.000Z') TO ('2027-01-01T00:00:00.000Z')"],
  ])('are partitions of another one by their names, and made as that (%s)', (name, family, making) => {
    expect(familyOf(name)).toBe(family);
    expect(makingOf(name)).toContain(making);
  });

  it.each(['once_key', 'delivery', 'audit_entry'])('are no partition of anything (%s)', (name) => {
    expect(familyOf(name)).toBe(name);
    expect(makingOf(name)).toBeUndefined();
  });

  it('differ where one lacks a table, or a column of the same type', () => {
    const some = [table('a', [], [{ name: 'x', type: 'integer' }])];
    expect(differenceOf(some, some)).toBeUndefined();
    expect(differenceOf([], some)).toBeUndefined();
    expect(differenceOf(some, [])).toBe('a');
    for (const columns of [[], [{ name: 'x', type: 'text' }]])
      expect(differenceOf(some, [table('a', [], columns)])).toBe('a.x (integer)');
  });
});
