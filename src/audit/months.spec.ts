import { describe, expect, it } from 'vitest';
import { monthOf, monthsBetween } from './months.js';

const at = (text: string) => Date.parse(text);

describe('the months of the audit log', () => {
  it('are those of both ends and all between', () => {
    expect(monthsBetween(at('2026-11-30T23:59:59.999Z'), at('2027-01-01T00:00:00Z'))).toEqual([
      { name: 'audit_entry_202611', from: '2026-11-01T00:00:00.000Z', to: '2026-12-01T00:00:00.000Z' },
      { name: 'audit_entry_202612', from: '2026-12-01T00:00:00.000Z', to: '2027-01-01T00:00:00.000Z' },
      { name: 'audit_entry_202701', from: '2027-01-01T00:00:00.000Z', to: '2027-02-01T00:00:00.000Z' },
    ]);
  });

  it('are one within a month', () => {
    expect(monthsBetween(at('2028-02-01T00:00:00Z'), at('2028-02-29T23:00:00Z'))).toHaveLength(1);
  });

  it.each([
    ['audit_entry_202611', '2026-12-01T00:00:00Z'],
    ['audit_entry_202612', '2027-01-01T00:00:00Z'],
    ['audit_entry_202802', '2028-03-01T00:00:00Z'],
  ])('%s ends at %s', (name, end) => {
    expect(monthOf(name)).toMatchObject({ name, to: new Date(at(end)).toISOString() });
  });

  it.each(['audit_entry', 'audit_entry_default', 'audit_entry_2026111', 'delivery_20261101', 'x_audit_entry_202611'])(
    '%s is none',
    (name) => {
      expect(monthOf(name)).toBeUndefined();
    },
  );
});
