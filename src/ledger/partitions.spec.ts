import { describe, expect, it } from 'vitest';
import { v7 as uuidv7 } from 'uuid';
import {
  createPartition,
  dayOfId,
  midnightOfPartition,
  lowestIdAt,
  partitionOf,
  partitionsBetween,
  timeOfId,
} from './partitions.js';

const dayMs = 86_400_000;
const noon = Date.UTC(2026, 10, 20, 12);

describe('the ids of a day', () => {
  it('begin with the lowest of its first millisecond', () => {
    const midnight = Date.UTC(2026, 10, 20);
    expect(lowestIdAt(midnight)).toMatch(/^[\da-f]{8}-[\da-f]{4}-0000-0000-000000000000$/);
    expect(timeOfId(lowestIdAt(midnight))).toBe(midnight);
    for (let i = 0; i < 100; i++) {
      expect(uuidv7({ msecs: midnight }) > lowestIdAt(midnight)).toBe(true);
      expect(uuidv7({ msecs: midnight - 1 }) < lowestIdAt(midnight)).toBe(true);
    }
  });

  it('tell when they were made', () => {
    expect(timeOfId(uuidv7({ msecs: noon + 123 }))).toBe(noon + 123);
    expect(timeOfId('ffffffff-ffff-7fff-bfff-ffffffffffff')).toBe(2 ** 48 - 1);
  });

  it('can be written for the whole of time', () => {
    expect(lowestIdAt(0)).toBe('00000000-0000-0000-0000-000000000000');
    expect(lowestIdAt(2 ** 48 - 1)).toBe('ffffffff-ffff-0000-0000-000000000000');
  });
});

describe('the partition of a notification', () => {
  it('is that of the day its id was made on', () => {
    expect(partitionOf('delivery', dayOfId(uuidv7({ msecs: noon })))).toBe('delivery_20261120');
    expect(partitionOf('attempt', dayOfId(lowestIdAt(Date.UTC(2026, 10, 21))))).toBe('attempt_20261121');
    expect(partitionOf('attempt', dayOfId(uuidv7({ msecs: Date.UTC(2026, 10, 21) - 1 })))).toBe('attempt_20261120');
  });

  it.each([
    'ffffffff-ffff-7fff-bfff-ffffffffffff',
    '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
    'no id',
    '',
    "'; DROP TABLE x",
  ])('is a name like any other, of no table that there is, for %j', (id) => {
    expect(partitionOf('delivery', dayOfId(id))).toMatch(/^delivery_\d{8,10}$/);
  });
});

describe('the partitions', () => {
  it('are one a day for each table, by UTC, both ends included', () => {
    const names = partitionsBetween(noon, noon + dayMs).map(({ name }) => name);
    expect(names).toEqual([
      'notification_20261120',
      'delivery_20261120',
      'attempt_20261120',
      'notification_20261121',
      'delivery_20261121',
      'attempt_20261121',
    ]);
    expect(partitionsBetween(noon, noon)).toHaveLength(3);
  });

  it('leave no gap and do not overlap, over the end of a year too', () => {
    const days = partitionsBetween(Date.UTC(2027, 11, 30), Date.UTC(2028, 2, 2)).filter(
      ({ table }) => table === 'delivery',
    );
    expect(days.map(({ name }) => name)).toContain('delivery_20280229');
    expect(days.slice(1).map(({ from }) => from)).toEqual(days.slice(0, -1).map(({ to }) => to));
  });

  it('say by their names which day they hold', () => {
    for (const { name, from } of partitionsBetween(noon, noon + dayMs))
      expect(midnightOfPartition(name)).toBe(timeOfId(from));
  });

  it.each(['delivery', 'delivery_default', 'delivery_2026112', 'delivery_20261120_old', 'invoice_20261120', ''])(
    'do not include a table named %j',
    (name) => {
      expect(midnightOfPartition(name)).toBeUndefined();
    },
  );

  it('are made as tables and then attached with their bounds, and are vacuumed early where rows change', () => {
    const [notification, delivery, attempt] = partitionsBetween(noon, noon).map(createPartition);
    const bounds = `FOR VALUES FROM ('${lowestIdAt(noon - dayMs / 2)}') TO ('${lowestIdAt(noon + dayMs / 2)}')`;
    const made = (table: string) =>
      [
        `CREATE TABLE ${table}_20261120 (LIKE ${table} INCLUDING DEFAULTS)`,
        `; ALTER TABLE ${table} ATTACH PARTITION ${table}_20261120 ${bounds}`,
      ] as const;
    expect(notification).toBe(made('notification').join(''));
    expect(attempt).toBe(made('attempt').join(''));
    expect(delivery).toBe(
      made('delivery').join(' WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)'),
    );
  });
});
